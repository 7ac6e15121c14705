//! The three sweeps that tell a server's step times from outside: which loads, in which order.

use precipice_engine::cost::GraphLimits;

/// What a sweep looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sweep {
    /// TTFT against the length of the prompt, one request at a time.
    Prompt,
    /// Time between tokens against the number of requests that decode together.
    Batch,
    /// Time between tokens against the length of the contexts, and prompts beside decodes.
    Context,
}

impl Sweep {
    /// For messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Prompt => "prompt sweep",
            Self::Batch => "batch sweep",
            Self::Context => "context sweep",
        }
    }
}

/// One load of a sweep: a closed loop of equal requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stage {
    /// The sweep that it belongs to.
    pub sweep: Sweep,
    /// Requests at once.
    pub clients: u32,
    /// Requests in all.
    pub requests: u32,
    /// Tokens of each prompt.
    pub prompt: u32,
    /// Tokens of each output.
    pub output: u32,
}

/// What bounds the sweeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Tokens of a step (`--max-num-batched-tokens`).
    pub max_num_batched_tokens: u32,
    /// Requests at once (`--max-num-seqs`).
    pub max_num_seqs: u32,
    /// Longest sequence.
    pub max_model_len: u32,
    /// Tokens of the KV pool, where they are known.
    pub pool_tokens: Option<u64>,
    /// Longest prompt to try; absent: four steps' tokens.
    pub longest_prompt: Option<u32>,
}

impl Limits {
    /// Those that the sizes of CUDA graphs follow from.
    pub fn graphs(&self) -> GraphLimits {
        GraphLimits { max_num_seqs: self.max_num_seqs, max_num_batched_tokens: self.max_num_batched_tokens }
    }
}

/// Each prompt length is asked for so many times, and the lower quartile counts.
const REPEATS: u32 = 5;
/// Output of a stage that measures decodes: eight windows of steps after everybody has begun.
const OUTPUT: u32 = 136;
/// Prompts of the batch sweep: short, so that contexts stay out of it.
const SHORT: u32 = 64;
/// Most requests at once in the batch sweep.
const WIDEST: u32 = 128;
/// Requests at once in the context sweep.
const TOGETHER: u32 = 8;

/// The stages in the order in which they are run: those that a profile can least do without come first.
pub fn stages(limits: &Limits) -> Vec<Stage> {
    let longest = limits
        .longest_prompt
        .unwrap_or_else(|| limits.max_num_batched_tokens.saturating_mul(4))
        .min(limits.max_model_len.saturating_sub(OUTPUT))
        .max(1);
    let budget = f64::from(limits.max_num_batched_tokens);
    let mut prompts: Vec<u32> =
        [0.25, 0.5, 0.75, 1.0, 2.0, 4.0].map(|share| ((budget * share) as u32).clamp(1, longest)).to_vec();
    prompts.dedup();
    let widest = limits.max_num_seqs.min(WIDEST);
    let mut stages: Vec<Stage> = Vec::new();
    for clients in [1, 4, 8, 16, 32, 64, 128].into_iter().filter(|clients| *clients <= widest) {
        let stage = Stage { sweep: Sweep::Batch, clients, requests: clients, prompt: SHORT, output: OUTPUT };
        if fits(&stage, limits) {
            stages.push(stage);
        }
    }
    for prompt in &prompts {
        stages.push(Stage {
            sweep: Sweep::Prompt,
            clients: 1,
            requests: REPEATS,
            prompt: *prompt,
            output: 2,
        });
    }
    for share in [1.0, 2.0, 3.0, 4.0] {
        let prompt = (budget * share) as u32;
        for clients in [1, TOGETHER, 2 * TOGETHER].into_iter().filter(|clients| *clients <= widest) {
            let stage = Stage { sweep: Sweep::Context, clients, requests: clients, prompt, output: OUTPUT };
            if prompt <= longest && fits(&stage, limits) {
                stages.push(stage);
            }
        }
    }
    stages
}

/// All its requests have room in the pool together: a preemption would spoil it.
fn fits(stage: &Stage, limits: &Limits) -> bool {
    let tokens = u64::from(stage.clients) * u64::from(stage.prompt + stage.output + 16);
    limits.pool_tokens.is_none_or(|pool| tokens <= pool)
}

#[cfg(test)]
mod tests {
    use super::{Limits, Sweep, stages};

    const LIMITS: Limits = Limits {
        max_num_batched_tokens: 2048,
        max_num_seqs: 128,
        max_model_len: 8192,
        pool_tokens: Some(120_064),
        longest_prompt: None,
    };

    #[test]
    fn all_stages_fit_the_server() {
        for limits in [LIMITS, Limits { max_num_seqs: 4, pool_tokens: Some(9000), ..LIMITS }] {
            let stages = stages(&limits);
            for sweep in [Sweep::Prompt, Sweep::Batch, Sweep::Context] {
                assert!(stages.iter().any(|stage| stage.sweep == sweep), "{sweep:?}");
            }
            for stage in stages {
                assert!(stage.prompt + stage.output <= limits.max_model_len);
                assert!(stage.clients <= limits.max_num_seqs);
                assert!(
                    u64::from(stage.clients * (stage.prompt + stage.output)) <= limits.pool_tokens.unwrap()
                );
            }
        }
    }
}
