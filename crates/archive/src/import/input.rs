//! Files, packed or not.

use super::ImportError;
use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// Most bytes that a file which must be in memory as a whole may unpack to.
const LIMIT: u64 = 4 << 30;

/// Opens a file; gzip is recognised by its content, whatever the name.
pub(super) fn open(path: &Path) -> Result<Box<dyn BufRead>, ImportError> {
    let failed = |source| ImportError::Read { path: path.to_owned(), source };
    let mut file = BufReader::with_capacity(1 << 16, File::open(path).map_err(failed)?);
    let packed = file.fill_buf().map_err(failed)?.starts_with(&[0x1f, 0x8b]);
    Ok(if packed {
        Box::new(BufReader::with_capacity(1 << 16, MultiGzDecoder::new(file)))
    } else {
        Box::new(file)
    })
}

/// Reads a whole file.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, ImportError> {
    let failed = |source| ImportError::Read { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    open(path)?.take(LIMIT).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// Reads a whole file as text; bytes that are not UTF-8 become the replacement character, as in a log of any server.
pub(super) fn read_text(path: &Path) -> Result<String, ImportError> {
    Ok(String::from_utf8_lossy(&read(path)?).into_owned())
}

/// The file's name without its directory.
pub(super) fn name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The chosen one of several results in a file, from 1; a lone one needs no choice.
pub(super) fn choose<T>(path: &Path, mut results: Vec<T>, choice: Option<usize>) -> Result<T, ImportError> {
    let chosen = choice.unwrap_or(usize::from(results.len() == 1));
    if (1..=results.len()).contains(&chosen) {
        Ok(results.swap_remove(chosen - 1))
    } else {
        Err(ImportError::SeveralResults { path: path.to_owned(), results: results.len() })
    }
}
