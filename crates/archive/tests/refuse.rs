//! What is no place for a run, and what is no run, is said before anything else happens.

use precipice_archive::{ArchiveError, RunWriter, read, read_manifest, recover, write};
use precipice_record::{Manifest, Run};
use std::fs;

#[test]
fn a_directory_in_use_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    fs::write(scratch.path().join("thesis.tex"), "").unwrap();
    for error in [
        RunWriter::create(scratch.path(), &Manifest::default()).err().unwrap(),
        write(scratch.path(), &Run::default()).err().unwrap(),
    ] {
        assert!(matches!(error, ArchiveError::NotEmpty(_)), "{error}");
        assert!(error.to_string().contains("--out"), "{error}");
    }
    let file = scratch.path().join("thesis.tex");
    let error = RunWriter::create(&file, &Manifest::default()).err().unwrap();
    assert!(matches!(error, ArchiveError::NotADirectory(_)), "{error}");
    let below = RunWriter::create(file.join("run"), &Manifest::default()).err().unwrap();
    assert!(
        matches!(&below, ArchiveError::Unwritable { .. }) && below.to_string().contains("--out"),
        "{below}"
    );
}

#[test]
fn a_run_being_written_is_neither_overwritten_nor_recovered() {
    let scratch = tempfile::tempdir().unwrap();
    let writer = RunWriter::create(scratch.path(), &Manifest::default()).unwrap();
    let pid = std::process::id().to_string();
    for error in [
        RunWriter::create(scratch.path(), &Manifest::default()).err().unwrap(),
        recover(scratch.path()).unwrap_err(),
    ] {
        assert!(matches!(&error, ArchiveError::Live { pid: by, .. } if *by == pid), "{error}");
    }
    drop(writer);
    recover(scratch.path()).unwrap();
}

#[test]
fn what_is_no_run_is_said() {
    let scratch = tempfile::tempdir().unwrap();
    assert!(matches!(read(scratch.path()), Err(ArchiveError::NotARun(_))));
    assert!(matches!(read(scratch.path().join("nowhere")), Err(ArchiveError::NotARun(_))));
    let says = |manifest: &str| {
        fs::write(scratch.path().join("run.json"), manifest).unwrap();
        read_manifest(scratch.path()).unwrap_err()
    };
    assert!(matches!(says("{"), ArchiveError::Manifest { .. }));
    assert!(matches!(says("{}"), ArchiveError::ForeignSchema { .. }));
    assert!(matches!(says(r#"{"schema": "other.tool/1"}"#), ArchiveError::ForeignSchema { .. }));
    let newer = says(r#"{"schema": "precipice.run/2", "rows": "elsewhere"}"#);
    assert!(matches!(newer, ArchiveError::NewerSchema { .. }));
    assert!(newer.to_string().contains("use a newer precipice"), "{newer}");
}
