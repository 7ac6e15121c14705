//! `run.json`: checked when read, replaced in one piece when written.

use crate::{ArchiveError, RunDir};
use precipice_record::Manifest;
use precipice_record::manifest::SCHEMA;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::Path;

/// Reads the manifest of the run at `dir` and nothing else.
///
/// # Errors
/// When there is none, it is not JSON of its schema, or a newer version wrote it.
pub fn read_manifest(dir: impl AsRef<Path>) -> Result<Manifest, ArchiveError> {
    let dir = RunDir::new(dir.as_ref());
    let path = dir.manifest();
    let bytes = std::fs::read(&path).map_err(|source| match source.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => ArchiveError::NotARun(dir.root().to_owned()),
        _ => ArchiveError::Io { path: path.clone(), source },
    })?;
    check_schema(&path, &bytes)?;
    serde_json::from_slice(&bytes).map_err(|source| ArchiveError::Manifest { path, source })
}

/// The schema is checked before the rest, so that a newer format is called that and not a missing field.
fn check_schema(path: &Path, bytes: &[u8]) -> Result<(), ArchiveError> {
    #[derive(serde::Deserialize)]
    struct Versioned {
        #[serde(default)]
        schema: String,
    }
    let Versioned { schema: found } = serde_json::from_slice(bytes)
        .map_err(|source| ArchiveError::Manifest { path: path.to_owned(), source })?;
    let version = |schema: &str| -> Option<u32> { schema.strip_prefix("precipice.run/")?.parse().ok() };
    match (version(&found), version(SCHEMA)) {
        (Some(found), Some(known)) if found <= known => Ok(()),
        (Some(_), _) => Err(ArchiveError::NewerSchema { path: path.to_owned(), found }),
        (None, _) => Err(ArchiveError::ForeignSchema { path: path.to_owned(), found }),
    }
}

/// Writes the manifest so that a reader sees the old one or the new one, whole.
pub(crate) fn write_manifest(dir: &RunDir, manifest: &Manifest) -> Result<(), ArchiveError> {
    let path = dir.manifest();
    let mut bytes = serde_json::to_vec_pretty(manifest)
        .map_err(|source| ArchiveError::Manifest { path: path.clone(), source })?;
    bytes.push(b'\n');
    let tmp = path.with_extension("json.tmp");
    File::create(&tmp)
        .and_then(|mut file| file.write_all(&bytes).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(&tmp, &path))
        .map_err(ArchiveError::io(&path))
}
