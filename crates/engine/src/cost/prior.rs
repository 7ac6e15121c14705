//! What a cost model says of a server's steps, for somebody who has seen none yet.

use crate::batch::{Entry, Scheduled, StepCost, StepCostError, StepShape};
use crate::config::EngineConfig;

/// Two speeds of a busy server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepPrior {
    /// Seconds of a step in which as many sequences decode as the pool holds at three quarters of the window each.
    pub step_s: f64,
    /// Prompt tokens per second of a step that is one chunk of a prefill and nothing else.
    pub prefill_tokens_per_s: f64,
}

impl StepPrior {
    /// Of a server with these settings.
    ///
    /// # Errors
    /// When the cost model does not know such steps.
    pub fn of(config: &EngineConfig, cost: &mut dyn StepCost) -> Result<Self, StepCostError> {
        let context = (config.max_model_len / 4 * 3).max(1);
        let blocks = context.div_ceil(config.block_size.max(1));
        let running = (config.usable_blocks() / blocks).clamp(1, config.max_num_seqs);
        let decode = |slot| Scheduled {
            slot,
            tokens: 1,
            computed: context,
            recomputed: 0,
            entry: Entry::Running,
            context: false,
            first: false,
            samples: true,
        };
        let decodes: Vec<Scheduled> = (0..running).map(decode).collect();
        let chunk = config.max_num_batched_tokens.min(config.max_model_len).max(1);
        let prefill = Scheduled {
            tokens: chunk,
            computed: 0,
            entry: Entry::New,
            context: true,
            first: true,
            ..decode(0)
        };
        let mut seconds = |requests: &[Scheduled]| {
            let tokens = requests.iter().map(|scheduled| scheduled.tokens).sum();
            let sampling = requests.len() as u32;
            let shape = StepShape { requests, tokens, sampling, running: sampling };
            // The host's part hides behind the device's, or is hidden by it.
            cost.step_time(&shape).map(|time| {
                let gpu = time.gpu.secs();
                if config.async_scheduling { gpu.max(time.host.secs()) } else { gpu + time.host.secs() }
            })
        };
        let step_s = seconds(&decodes)?;
        Ok(Self { step_s, prefill_tokens_per_s: f64::from(chunk) / seconds(&[prefill])?.max(1e-9) })
    }
}
