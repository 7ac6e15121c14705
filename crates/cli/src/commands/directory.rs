//! The directory of a new run, and its manifest before anything happened.

use crate::args::output::OutputArgs;
use crate::config::{self, Setting};
use crate::outcome::usage;
use anyhow::Result;
use precipice_archive::RunWriter;
use precipice_record::manifest::SCHEMA;
use precipice_record::{LoadFacts, Manifest, ServerFacts, Source};
use serde_json::{Map, Value, json};
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;

/// A manifest with everything that is known beforehand.
pub(crate) fn manifest(
    source: Source,
    load: LoadFacts,
    server: ServerFacts,
    settings: &[Setting],
    spec: &Value,
) -> Manifest {
    let settings: Map<String, Value> = settings
        .iter()
        .map(|setting| {
            (setting.name.clone(), json!({"value": setting.shown(), "from": setting.origin.name()}))
        })
        .collect();
    Manifest {
        schema: SCHEMA.to_owned(),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        source,
        load,
        server,
        plan: json!({
            "command_line": config::command_line(std::env::args()),
            "settings": settings,
            "workload": spec,
        }),
        ..Manifest::default()
    }
}

/// Opens the run directory before any load is sent, so that a bad path costs nothing.
pub(crate) fn open(output: &OutputArgs, manifest: &Manifest) -> Result<RunWriter> {
    let dir = output.out.clone().unwrap_or_else(|| dated("runs"));
    RunWriter::create(&dir, manifest).map_err(usage)
}

/// `BASE/DATE-TIME`, with a count when two start in the same second.
pub(crate) fn dated(base: &str) -> PathBuf {
    let name = jiff::ZonedDateTime::now().strftime("%Y%m%d-%H%M%S").to_string();
    let base = PathBuf::from(base);
    let mut path = base.join(&name);
    let mut count = 2_u32;
    while path.exists() {
        path = base.join(format!("{name}-{count}"));
        count += 1;
    }
    path
}

/// What makes the prompts of one run differ from those of every other. The standard library seeds its hashers
/// from the system's random source; the salt is recorded, so nothing is lost by its being random.
pub(crate) fn salt() -> String {
    format!("{:016x}", RandomState::new().hash_one(std::process::id()))
}
