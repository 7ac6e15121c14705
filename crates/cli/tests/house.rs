//! What the documents say of the house, held against the house.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// All packages of the workspace and what they stand on.
fn metadata() -> Vec<Value> {
    // Of this platform alone: those of others may not be on the disk.
    let version = Command::new(env!("CARGO")).arg("-vV").output().unwrap();
    let version = String::from_utf8(version.stdout).unwrap();
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let cargo = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--filter-platform", host, "--manifest-path"])
        .arg(project("Cargo.toml"))
        .output()
        .unwrap();
    assert!(cargo.status.success(), "{}", String::from_utf8_lossy(&cargo.stderr));
    let metadata: Value = serde_json::from_slice(&cargo.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

/// The crates that the members of the workspace name.
fn named(packages: &[Value]) -> BTreeSet<String> {
    let members = packages.iter().filter(|package| package["source"].is_null());
    let dependencies = members.flat_map(|package| package["dependencies"].as_array().unwrap());
    let foreign = dependencies.filter(|dependency| dependency["path"].is_null());
    foreign.map(|dependency| dependency["name"].as_str().unwrap().to_owned()).collect()
}

/// Licence and version of each crate in the table; those of `fuzz/` are not of the workspace.
fn documented() -> BTreeMap<String, (String, String)> {
    let page = std::fs::read_to_string(project("docs/dependencies.md")).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| ") && !line.contains("`fuzz/` only")).skip(2);
    let mut crates = BTreeMap::new();
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let names = cells[0].split(['(']).next().unwrap().split(',').map(str::trim);
        for (name, version) in names.zip(cells[3].split(',').map(str::trim)) {
            crates.insert(name.to_owned(), (cells[2].to_owned(), version.to_owned()));
        }
    }
    crates
}

#[test]
fn the_page_of_dependencies_is_the_workspaces() {
    let packages = metadata();
    let documented = documented();
    assert_eq!(documented.keys().cloned().collect::<BTreeSet<_>>(), named(&packages));
    for (name, (licence, version)) in documented {
        let of_name = || packages.iter().filter(|package| package["name"] == *name);
        assert!(of_name().any(|package| package["license"] == *licence), "{name}: {licence}");
        // Build metadata behind a plus says nothing.
        let found =
            |package: &Value| package["version"].as_str().unwrap().split('+').next().unwrap() == version;
        assert!(of_name().any(found), "{name}: {version} is not the version of Cargo.lock");
    }
}

#[test]
fn every_dependency_of_the_workspace_has_a_user() {
    let manifest: toml::Table = std::fs::read_to_string(project("Cargo.toml")).unwrap().parse().unwrap();
    let listed = manifest["workspace"]["dependencies"].as_table().unwrap();
    let listed = listed.keys().filter(|name| !name.starts_with("precipice-")).cloned();
    assert_eq!(listed.collect::<BTreeSet<_>>(), named(&metadata()));
}
