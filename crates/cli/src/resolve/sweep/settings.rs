//! What is varied: a grid, a list or a preset, as points.

use super::flags;
use crate::args::sweep::SweepArgs;
use crate::outcome::usage;
use crate::resolve::suggest;
use anyhow::Result;
use precipice_decide::sweep::{Point, Preset, grid};
use precipice_flags::FLAGS;
use std::path::Path;

/// The points of a sweep, in the order in which they were asked for.
pub(super) fn points(args: &SweepArgs, preset: Option<Preset>) -> Result<Vec<Point>> {
    if let Some(path) = &args.sweep.list {
        return list(path, args.live.restart_cmd.is_some());
    }
    let mut axes = args.sweep.set.clone();
    if let Some(preset) = preset {
        // What is said on the command line replaces the preset's own values.
        axes.extend(
            preset
                .axes(args.target.url.is_some())
                .into_iter()
                .filter(|axis| !args.sweep.set.iter().any(|set| set.name == axis.name)),
        );
    }
    if axes.is_empty() {
        return Err(usage(
            "nothing is varied: give --set NAME=VALUES (--set max-num-seqs=8,16), --list or --preset",
        ));
    }
    let names: Vec<&str> = axes.iter().map(|axis| axis.name.as_str()).collect();
    if let Some(twice) = (1..names.len()).find(|place| names[..*place].contains(&names[*place])) {
        return Err(usage(format!("--set {} is given twice: put all its values into one", names[twice])));
    }
    known(&names, "--set", args.live.restart_cmd.is_some())?;
    Ok(grid(&axes))
}

/// A JSON array of objects, or TOML with `[[setting]]` tables.
fn list(path: &Path, restarts: bool) -> Result<Vec<Point>> {
    let named = |problem: String| usage(format!("--list {}: {problem}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| named(error.to_string()))?;
    let table: serde_json::Value = if text.trim_start().starts_with('[')
        && !text.trim_start().starts_with("[[")
    {
        serde_json::from_str(&text).map_err(|error| named(format!("not JSON: {error}")))?
    } else {
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| named(error.to_string()))?;
        let settings = table.get("setting").ok_or_else(|| named("no [[setting]] table".to_owned()))?;
        serde_json::to_value(settings).map_err(|error| named(error.to_string()))?
    };
    let entries = table.as_array().ok_or_else(|| named("expected a list of settings".to_owned()))?;
    let mut points: Vec<Point> = Vec::new();
    for (place, entry) in entries.iter().enumerate() {
        let wrong = || named(format!("setting {}: expected names with values", place + 1));
        let fields = entry.as_object().filter(|fields| !fields.is_empty()).ok_or_else(wrong)?;
        let pairs = fields.iter().map(|(name, value)| {
            let value = match value {
                serde_json::Value::String(text) => text.clone(),
                serde_json::Value::Number(_) | serde_json::Value::Bool(_) => value.to_string(),
                _ => return Err(wrong()),
            };
            Ok((name.replace('_', "-"), value))
        });
        let point = Point(pairs.collect::<Result<_>>()?);
        known(&point.0.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), "--list", restarts)?;
        if points.contains(&point) {
            return Err(named(format!("setting {} ({point}) is there twice", place + 1)));
        }
        points.push(point);
    }
    if points.is_empty() { Err(named("no settings".to_owned())) } else { Ok(points) }
}

/// Every name is a flag of `run` that a sweep does not use itself, or a setting of a server that is restarted.
fn known(names: &[&str], flag: &str, restarts: bool) -> Result<()> {
    for name in names {
        if !flags::may_vary(name) || !(restarts || flags::of_run(name)) {
            let known = FLAGS.iter().map(|flag| flag.name).filter(|name| flags::may_vary(name));
            let near = suggest::did_you_mean(&suggest::near(name, known));
            return Err(usage(format!(
                "{flag} {name}: {near}no flag of 'precipice run' that can be varied ('precipice run --help' lists them); a \
                 setting of a real server needs --url and --restart-cmd"
            )));
        }
    }
    Ok(())
}
