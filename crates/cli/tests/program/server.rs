//! A simulated server beside a test.

use crate::harness::command;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};

/// A simulated server, which ends with the test.
pub(crate) struct Server {
    process: Child,
    pub(crate) url: String,
    _stdout: BufReader<ChildStdout>,
}

impl Server {
    /// Starts it on a free port; `flags` are those of `precipice serve`.
    pub(crate) fn start(flags: &[&str], dir: &Path) -> Self {
        let args = [&["serve", "--port", "0", "--exit-after", "120s"], flags].concat();
        let mut process = command(&args, dir).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut stdout = BufReader::new(process.stdout.take().unwrap());
        let mut url = String::new();
        stdout.read_line(&mut url).unwrap();
        Self { process, url: url.trim().to_owned(), _stdout: stdout }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}
