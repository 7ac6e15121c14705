//! Real bytes of real servers, read and written back.

#![allow(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

mod bench;
mod events;
mod logs;
mod pages;
mod written;

use std::path::{Path, PathBuf};

fn data(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(path)
}

fn bytes(path: &str) -> Vec<u8> {
    std::fs::read(data(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn text(path: &str) -> String {
    String::from_utf8(bytes(path)).unwrap()
}

/// The captures of a folder, by name.
fn captures(folder: &str) -> Vec<(String, Vec<u8>)> {
    let mut names: Vec<PathBuf> =
        std::fs::read_dir(data(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    names
        .into_iter()
        .map(|path| {
            let name = format!("{folder}/{}", path.file_stem().unwrap().to_str().unwrap());
            (name, std::fs::read(path).unwrap())
        })
        .collect()
}

/// Status and body of a response, its framing taken off.
fn response(raw: &[u8]) -> (u16, Vec<u8>) {
    let end = memchr::memmem::find(raw, b"\r\n\r\n").unwrap() + 4;
    let head = std::str::from_utf8(&raw[..end]).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let mut rest = &raw[end..];
    if !head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        return (status, rest.to_vec());
    }
    let mut body = Vec::new();
    // A capture that was cut in the middle ends without the last chunk.
    while let Some(line) = memchr::memmem::find(rest, b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..line]).unwrap(), 16).unwrap();
        let start = line + 2;
        body.extend_from_slice(&rest[start..(start + size).min(rest.len())]);
        rest = rest.get(start + size + 2..).unwrap_or_default();
    }
    (status, body)
}

fn body(capture: &str) -> Vec<u8> {
    response(&bytes(&format!("{capture}.http"))).1
}
