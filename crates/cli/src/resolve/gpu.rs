//! `--gpu NAME`

use super::suggest;
use crate::outcome::usage;
use crate::printer;
use anyhow::Result;
use precipice_engine::catalog::Gpu;

/// The GPU that a name of the catalog means. Where a name stands for several, says which was taken.
pub(crate) fn named(flag: &str, name: &str) -> Result<Gpu> {
    let gpu = Gpu::named(name).map_err(|error| {
        let near = suggest::near(name, Gpu::known());
        usage(format!("{flag} {name}: {}{error}", suggest::did_you_mean(&near)))
    })?;
    let others = same(name, &gpu.name);
    if !others.is_empty() {
        printer::note_once(&format!(
            "note: {flag} {name}: taken as {} (there is also {})",
            gpu.name,
            others.join(", ")
        ));
    }
    Ok(gpu)
}

/// Other GPUs of the catalog whose names hold all words of this one.
fn same(name: &str, taken: &str) -> Vec<String> {
    let plain = |text: &str| text.to_lowercase().replace(['-', '_'], " ").replace("nvidia", "");
    let words: Vec<String> = plain(name).split_whitespace().map(str::to_owned).collect();
    let exact = |known: &str| plain(known).split_whitespace().eq(words.iter().map(String::as_str));
    if exact(taken) {
        return Vec::new();
    }
    let holds = |known: &String| {
        let known = plain(known);
        let known: Vec<&str> = known.split_whitespace().collect();
        words.iter().all(|word| known.contains(&word.as_str()))
    };
    Gpu::known().into_iter().filter(|known| known != taken && holds(known)).collect()
}

#[cfg(test)]
mod tests {
    use super::same;

    #[test]
    fn a_name_that_several_have_is_ambiguous_and_a_whole_one_is_not() {
        let taken = precipice_engine::catalog::Gpu::named("A100").unwrap().name;
        assert!(!same("A100", &taken).is_empty());
        assert!(same(&taken, &taken).is_empty());
        assert!(same("nvidia rtx 4090", "RTX 4090").is_empty());
    }
}
