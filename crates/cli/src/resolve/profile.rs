//! `--profile NAME|FILE.toml`.

use crate::outcome::usage;
use anyhow::Result;
use precipice_engine::cost::Profile;
use std::path::Path;

/// Reads a profile: a file, or one that comes with the program. A file wins over a name.
pub(crate) fn profile(text: &str) -> Result<Profile> {
    let path = Path::new(text);
    let named = |problem: String| usage(format!("--profile {text}: {problem}"));
    if path.is_file() {
        let text = std::fs::read_to_string(path).map_err(|error| named(error.to_string()))?;
        return Profile::from_toml(&text).map_err(|error| named(error.to_string()));
    }
    Profile::shipped(text).ok_or_else(|| {
        named(format!(
            "no such file, and no profile of that name comes with the program (it has {})",
            Profile::shipped_names().collect::<Vec<_>>().join(", ")
        ))
    })
}
