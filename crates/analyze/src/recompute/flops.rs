//! The FLOPs counter against the FLOPs that exactly these requests need.

use crate::findings::Reason;
use crate::schedule::asked::{Asked, AskedRequest};
use crate::server::ServerPart;
use precipice_dialect::Meaning;
use precipice_engine::catalog::{Deployment, StepWork};
use precipice_record::Run;

/// How much too high the closed form is at most, because it cuts prompts into whole budgets (`docs/method.md`).
const CLOSED_FORM: f64 = 0.0025;

/// A value with its bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bounded {
    pub(crate) value: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// What the counter showed and what it had to show.
#[derive(Debug, Default)]
pub(crate) struct FlopsLedger {
    pub(crate) deployment: Option<Deployment>,
    /// By the counter, on one GPU (replicas together).
    pub(crate) measured: Option<f64>,
    pub(crate) expected: Option<f64>,
    /// What the excess stands for.
    pub(crate) recomputed: Option<Bounded>,
    /// Σ tokens · context / Σ tokens of the expected work.
    pub(crate) mean_context: Option<f64>,
    /// Why there is no excess.
    pub(crate) reason: Option<Reason>,
}

impl FlopsLedger {
    /// `footprint_tokens` is what a running request holds on average.
    pub(crate) fn of(
        run: &Run,
        server: &ServerPart,
        asked: Result<&Asked, Reason>,
        deployment: Result<Deployment, Reason>,
        footprint_tokens: Option<f64>,
    ) -> Self {
        // The counter is always there; 0 says that it is off.
        let measured = server.grown(Meaning::Flops).filter(|&flops| flops > 0.0);
        let mut ledger = Self { measured, ..Self::default() };
        let expected = ledger.expect(run, asked, deployment);
        ledger.reason = match expected {
            Err(reason) => Some(reason),
            Ok(()) if measured.is_none() => Some(Reason::FlopsCounterOff),
            Ok(()) => None,
        };
        if let (Some(measured), Some(expected)) = (ledger.measured, ledger.expected) {
            if run.manifest.server.tensor_parallel_size.is_none()
                && !(0.98..1.9).contains(&(measured / expected))
            {
                // On several GPUs each counts its part.
                ledger.expected = None;
                ledger.reason = Some(Reason::GpusUnknown);
            } else {
                ledger.recomputed =
                    ledger.excess(run, measured - expected, expected, asked, footprint_tokens);
            }
        }
        ledger
    }

    /// Whether work is what the counter counted, to the digits that a page of metrics carries.
    pub(crate) fn counted(&self, work: &StepWork) -> bool {
        let by_formula = self.deployment.as_ref().map(|deployment| deployment.flops(work));
        self.measured.zip(by_formula).is_some_and(|(measured, flops)| (flops / measured - 1.0).abs() < 1e-9)
    }

    fn expect(
        &mut self,
        run: &Run,
        asked: Result<&Asked, Reason>,
        deployment: Result<Deployment, Reason>,
    ) -> Result<(), Reason> {
        let deployment = self.deployment.insert(deployment?);
        let asked = asked?;
        let longest = asked.requests.iter().map(|one| one.prompt).max().unwrap_or(0);
        let budget = run.manifest.server.max_num_batched_tokens;
        let chunk = match budget {
            Some(budget) => budget,
            None if run.manifest.server.chunked_prefill == Some(false) => longest,
            None => return Err(Reason::StepBudgetUnknown),
        };
        let cached = asked.cached.ok_or(Reason::PrefixHitsUnknown)?;
        let share = cached as f64 / (asked.prompt_tokens() as f64).max(1.0);
        let mut work = StepWork::default();
        for request in &asked.requests {
            work += request_work(request, share, chunk);
        }
        self.expected = Some(deployment.flops(&work));
        self.mean_context = Some(work.token_context as f64 / (work.tokens() as f64).max(1.0));
        Ok(())
    }

    /// A victim holds what a running request holds on average; computed again from its beginning in whole budgets, the
    /// mean context of its tokens is half of that and half a budget.
    fn excess(
        &self,
        run: &Run,
        excess: f64,
        expected: f64,
        asked: Result<&Asked, Reason>,
        footprint_tokens: Option<f64>,
    ) -> Option<Bounded> {
        let deployment = self.deployment.as_ref()?;
        let held = footprint_tokens?;
        let chunk = f64::from(run.manifest.server.max_num_batched_tokens.unwrap_or(u32::MAX)).min(held);
        let longest = asked.ok()?.requests.iter().map(|one| one.prompt + one.output).max()?;
        let tokens = |excess: f64, context: f64| deployment.recomputed_tokens(excess, context).max(0.0);
        Some(Bounded {
            value: tokens(excess, f64::midpoint(held, chunk)),
            low: tokens(excess, f64::from(longest)),
            high: tokens(excess + CLOSED_FORM * expected, held / 2.0),
        })
    }
}

/// The work of one request, the beginning of its prompt found in the cache: as the server said for it, else `share` of
/// it as of all.
fn request_work(request: &AskedRequest, share: f64, chunk: u32) -> StepWork {
    let prompt = u64::from(request.prompt);
    let found = request.cached.map_or_else(|| (prompt as f64 * share).round() as u64, u64::from);
    // The last token of a prompt is always computed.
    let mut computed = found.min(prompt.saturating_sub(1));
    if computed == 0 {
        return precipice_engine::catalog::request_work(prompt, u64::from(request.output), u64::from(chunk));
    }
    let mut work = StepWork::default();
    while computed < prompt {
        let tokens = u64::from(chunk.max(1)).min(prompt - computed);
        work.add(tokens, computed, true);
        computed += tokens;
    }
    let decodes = precipice_engine::catalog::request_work(0, u64::from(request.output), 1);
    work.decode_tokens = decodes.decode_tokens;
    work.decode_context = decodes.decode_context + decodes.decode_tokens * prompt;
    work.token_context += work.decode_context;
    work
}

#[cfg(test)]
mod tests {
    use super::request_work;
    use crate::schedule::asked::AskedRequest;
    use precipice_engine::catalog::StepWork;

    #[test]
    fn a_cached_beginning_is_context_and_not_work() {
        let request = AskedRequest { row: 0, prompt: 100, output: 3, cached: Some(60) };
        let mut work = StepWork::default();
        work.add(30, 60, true);
        work.add(10, 90, true);
        work.add(1, 100, false);
        work.add(1, 101, false);
        assert_eq!(request_work(&request, 0.0, 30), work);
        let by_share = AskedRequest { cached: None, ..request };
        assert_eq!(request_work(&by_share, 0.6, 30), work);
    }
}
