//! The server's token counters, which count each prompt and each output token once.

use crate::findings::{Reason, TokenCounter, TokenLedger};
use crate::schedule::asked::Asked;
use crate::server::ServerPart;
use precipice_dialect::Meaning;

/// Each counter that the server exposes. `recomputed` is what was computed twice, where it is known.
pub(crate) fn ledgers(
    server: &ServerPart,
    asked: Result<&Asked, Reason>,
    recomputed: Option<f64>,
) -> Vec<TokenLedger> {
    let Ok(asked) = asked else { return Vec::new() };
    let prompt = asked.prompt_tokens() as f64;
    let output: f64 = asked.requests.iter().map(|one| f64::from(one.output)).sum();
    // Of a prompt, vLLM's iteration counter takes what was not found in the prefix cache.
    let computed = asked.cached.map(|cached| prompt - cached as f64 + output);
    let rows = [
        (TokenCounter::Iteration, Meaning::IterationTokens, computed),
        (TokenCounter::Prompt, Meaning::PromptTokens, Some(prompt)),
        (TokenCounter::Generation, Meaning::GenerationTokens, Some(output)),
    ];
    let ledger = |(name, meaning, expected): (TokenCounter, Meaning, Option<f64>)| {
        let (measured, expected) = (server.grown(meaning)?, expected?);
        let shown = measured - expected;
        Some(TokenLedger {
            name,
            measured,
            expected,
            blind: recomputed.is_some_and(|tokens| tokens > 0.0 && shown < 0.5 * tokens),
        })
    };
    rows.into_iter().filter_map(ledger).collect()
}
