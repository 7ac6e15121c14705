//! The program, started, and what it printed.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The program with these arguments in this directory, not started yet.
pub(crate) fn command(args: &[&str], dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_precipice"));
    command.args(args).current_dir(dir).env("NO_COLOR", "1");
    command
}

pub(crate) fn precipice(args: &[&str], dir: &Path) -> Output {
    command(args, dir).output().expect("the binary was built for this test")
}

/// Standard output of a call that must succeed.
pub(crate) fn done(args: &[&str], dir: &Path) -> String {
    let output = precipice(args, dir);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The JSON that a call that must succeed prints.
pub(crate) fn json(args: &[&str], dir: &Path) -> Value {
    serde_json::from_str(&done(args, dir)).expect("--json prints JSON alone on stdout")
}

/// Asserts exit code 2, nothing on stdout, and a message on stderr that holds every word.
pub(crate) fn refused(args: &[&str], dir: &Path, words: &[&str]) {
    ends(2, args, dir, words);
}

/// As [`refused`], with the exit code of a server that is not there.
pub(crate) fn unreachable(args: &[&str], dir: &Path, words: &[&str]) {
    ends(4, args, dir, words);
}

fn ends(code: i32, args: &[&str], dir: &Path, words: &[&str]) {
    let output = precipice(args, dir);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {message}");
    assert!(output.stdout.is_empty(), "{args:?}");
    for word in words {
        assert!(message.contains(word), "{args:?}: '{word}' is missing from: {message}");
    }
}

/// A path inside the project.
pub(crate) fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

pub(crate) fn near(value: &Value, expected: f64, share: f64) {
    let value = value.as_f64().unwrap();
    assert!((value - expected).abs() <= expected * share, "{value} is not within {share} of {expected}");
}
