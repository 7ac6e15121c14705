//! What a simulation says at its end.

use super::clients::Clients;
use super::server::Server;
use crate::scheduler::{Stall, StallReason};
use precipice_admission::Figures;
use precipice_record::{Doubt, Ns, Warning};

/// The end of a simulation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Summary {
    /// Steps with tokens.
    pub steps: u64,
    /// Preemptions.
    pub preemptions: u64,
    /// Tokens of all steps.
    pub scheduled_tokens: u64,
    /// Of these, tokens whose KV had been computed before and was dropped at a preemption.
    pub recomputed_tokens: u64,
    /// Floating-point operations by vLLM's formula, where the model is known.
    pub flops: Option<f64>,
    /// Attempts that ended well.
    pub completed: u64,
    /// Attempts that did not.
    pub failed: u64,
    /// First send of a measured request to the end of the last one.
    pub window: Option<(Ns, Ns)>,
    /// What the guard counted, where there was one.
    pub guard: Option<Figures>,
    /// The last moment of the run.
    pub end: Ns,
    /// The engine was stuck, at the end or until a client gave up.
    pub stall: Option<Stall>,
    /// Reasons not to believe it.
    pub warnings: Vec<Warning>,
}

pub(super) fn summary(server: &Server<'_>, clients: &Clients<'_>, stall: Option<Stall>, end: Ns) -> Summary {
    let totals = server.totals();
    let counts = clients.counts();
    let guessed = Some(counts.guessed_lengths).filter(|&requests| requests > 0);
    let hung = stall.as_ref().map(hang);
    let doubts = hung.into_iter().chain(guessed.map(|requests| Doubt::GuessedPromptTokens { requests }));
    Summary {
        steps: totals.steps,
        preemptions: totals.preemptions,
        scheduled_tokens: totals.tokens,
        recomputed_tokens: totals.recomputed,
        flops: totals.flops,
        completed: counts.completed,
        failed: counts.failed,
        window: counts.window,
        guard: clients.guard_figures(),
        end,
        stall,
        warnings: doubts.map(Warning::from).collect(),
    }
}

fn hang(stall: &Stall) -> Doubt {
    let of = |reason: StallReason| Some(stall.tokens).filter(|_| stall.reason == reason);
    Doubt::EngineHang {
        tokens: stall.tokens,
        blocks: stall.blocks,
        usable_blocks: stall.usable_blocks,
        waiting: stall.waiting,
        prompt_beyond_budget: of(StallReason::Budget),
        prompt_fills_window: of(StallReason::Window),
    }
}
