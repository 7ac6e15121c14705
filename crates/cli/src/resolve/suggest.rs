//! Names that are near to one that is not there.

/// Most names that are offered.
const OFFERED: usize = 3;
/// How alike two names must be (Jaro-Winkler, 0 to 1).
const ALIKE: f64 = 0.75;

/// The known names nearest to `name`, the nearest first: those that hold it, then those that are spelt like it.
pub(crate) fn near<S: AsRef<str>>(name: &str, known: impl IntoIterator<Item = S>) -> Vec<String> {
    let plain = |text: &str| text.to_lowercase().chars().filter(|c| c.is_alphanumeric()).collect::<String>();
    let wanted = plain(name);
    let mut scored: Vec<(f64, String)> = known
        .into_iter()
        .map(|known| {
            let known = known.as_ref();
            // A repository's owner is no part of what people type.
            let short = plain(known.rsplit('/').next().unwrap_or(known));
            let holds = !wanted.is_empty() && short.contains(&wanted);
            let alike = strsim::jaro_winkler(&wanted, &short);
            (if holds { 1.0 + alike } else { alike }, known.to_owned())
        })
        .filter(|(score, _)| *score >= ALIKE)
        .collect();
    scored.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    scored.into_iter().take(OFFERED).map(|(_, name)| name).collect()
}

/// `did you mean X or Y? `, with a space at the end; nothing where nothing is near.
pub(crate) fn did_you_mean(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!("did you mean {}? ", near.join(" or ")) }
}

#[cfg(test)]
mod tests {
    use super::near;

    #[test]
    fn what_people_type_finds_what_they_mean() {
        let flags = ["max-num-seqs", "max-model-len", "seed"];
        assert_eq!(near("max-num-seq", flags)[0], "max-num-seqs");
        let models = ["meta-llama/Meta-Llama-3-8B-Instruct", "Qwen/Qwen2.5-7B"];
        assert_eq!(near("llama3", models)[0], "meta-llama/Meta-Llama-3-8B-Instruct");
        assert!(near("Voodoo2", ["RTX 4090", "H200"]).is_empty());
    }
}
