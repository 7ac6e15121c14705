//! The settings of an engine, by vLLM's names.

use crate::version::VllmVersion;
use serde::{Deserialize, Serialize};

/// In which order waiting requests are served, and who is thrown out first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// First come, first served; the last admitted is the first victim.
    #[default]
    Fcfs,
    /// Smaller number first, ties by arrival; the largest is the first victim.
    Priority,
}

/// The settings that decide what a step consists of.
///
/// The defaults are those of `vllm serve` on a GPU with less than 70 GiB, with the KV pool and the window
/// of the overload test that this project was started from (120,064 tokens of KV, 8192 tokens a sequence).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EngineConfig {
    /// The release whose decisions are made.
    pub vllm_version: VllmVersion,
    /// Blocks of the KV pool, vLLM's null block included (`--num-gpu-blocks-override` counts so).
    pub num_gpu_blocks: u32,
    /// Tokens a block.
    pub block_size: u32,
    /// Longest running queue, and the largest batch that the server prepares for.
    pub max_num_seqs: u32,
    /// Requests that may run at once where that is fewer (since 0.31): the CUDA graphs stay those of
    /// `max_num_seqs`.
    pub max_num_active_seqs: Option<u32>,
    /// Tokens a step.
    pub max_num_batched_tokens: u32,
    /// Longest sequence, prompt and output together.
    pub max_model_len: u32,
    /// Order of service.
    pub scheduling_policy: Policy,
    /// Freed blocks keep their content until they are taken again, and are found by it.
    pub enable_prefix_caching: bool,
    /// A prompt may be computed over several steps.
    pub enable_chunked_prefill: bool,
    /// Longest chunk of a prefill in tokens; 0 is no limit.
    pub long_prefill_token_threshold: u32,
    /// That limit is never below an even share of the step's tokens (since 0.31).
    pub long_prefill_token_threshold_adaptive: bool,
    /// Steps from one with prefill to the next while others decode; 1 is no rule (since 0.33).
    pub prefill_schedule_interval: u32,
    /// A step is scheduled before the output of the one before it is known.
    pub async_scheduling: bool,
    /// A waiting request is admitted only if all its tokens so far fit in the free blocks.
    pub scheduler_reserve_full_isl: bool,
    /// Share of the pool that admission leaves free while others run, 0..1.
    pub watermark: f64,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            vllm_version: VllmVersion::default(),
            num_gpu_blocks: 7504,
            block_size: 16,
            max_num_seqs: 256,
            max_num_active_seqs: None,
            max_num_batched_tokens: 2048,
            max_model_len: 8192,
            scheduling_policy: Policy::Fcfs,
            enable_prefix_caching: true,
            enable_chunked_prefill: true,
            long_prefill_token_threshold: 0,
            long_prefill_token_threshold_adaptive: false,
            prefill_schedule_interval: 1,
            async_scheduling: true,
            scheduler_reserve_full_isl: true,
            watermark: 0.0,
        }
    }
}

/// Settings with which no engine starts.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// A count that must be at least 1 (or 2 for the pool) is smaller.
    #[error("--{flag} must be at least {least}, not {value}")]
    TooSmall {
        /// The flag, without dashes.
        flag: &'static str,
        /// The least value.
        least: u32,
        /// What was given.
        value: u32,
    },
    /// vLLM's rule that every running request can get its one token.
    #[error(
        "--max-num-batched-tokens ({tokens}) must be at least --max-num-seqs ({seqs}): \
         raise the first or lower the second"
    )]
    BudgetBelowSeqs {
        /// `max_num_batched_tokens`.
        tokens: u32,
        /// `max_num_seqs`.
        seqs: u32,
    },
    /// Without chunked prefill a prompt has to fit into one step.
    #[error(
        "--max-num-batched-tokens ({tokens}) is below --max-model-len ({window}) and chunked prefill is off: \
         raise the first, lower the second, or leave chunked prefill on"
    )]
    BudgetBelowWindow {
        /// `max_num_batched_tokens`.
        tokens: u32,
        /// `max_model_len`.
        window: u32,
    },
    /// The pool does not hold one longest sequence.
    #[error(
        "the KV pool of {blocks} blocks of {block_size} tokens does not hold one sequence of --max-model-len \
         {window}: give it more memory (--num-gpu-blocks-override, --kv-cache-memory-bytes, \
         --gpu-memory-utilization) or lower --max-model-len to {fits} or less"
    )]
    PoolBelowWindow {
        /// `num_gpu_blocks`.
        blocks: u32,
        /// `block_size`.
        block_size: u32,
        /// `max_model_len`.
        window: u32,
        /// The longest window that the pool holds.
        fits: u64,
    },
    /// More may be active than the server prepares for.
    #[error(
        "--max-num-active-seqs ({active}) must be at most --max-num-seqs ({seqs}): lower the first or raise the second"
    )]
    ActiveAboveSeqs {
        /// `max_num_active_seqs`.
        active: u32,
        /// `max_num_seqs`.
        seqs: u32,
    },
    /// vLLM's own check.
    #[error(
        "--long-prefill-token-threshold ({threshold}) must be at most --max-model-len ({window}): lower the first or \
         raise the second"
    )]
    ThresholdAboveWindow {
        /// `long_prefill_token_threshold`.
        threshold: u32,
        /// `max_model_len`.
        window: u32,
    },
    /// A setting that the release does not have.
    #[error(
        "--{flag} came with vLLM {since}, and this is the engine of {version}: leave it out, or say --vllm-version {since}"
    )]
    Later {
        /// The flag, without dashes.
        flag: &'static str,
        /// The release that brought it.
        since: VllmVersion,
        /// The release whose decisions are made.
        version: VllmVersion,
    },
    /// Not a share.
    #[error("--watermark must be from 0 to 1, not {0}")]
    Watermark(f64),
}

impl EngineConfig {
    /// Checks what the step machine itself needs; traces may hold settings that [`Self::validate`] refuses.
    pub(crate) fn check_machine(&self) -> Result<(), ConfigError> {
        for (flag, least, value) in [
            ("num-gpu-blocks-override", 2, self.num_gpu_blocks),
            ("block-size", 1, self.block_size),
            ("max-num-seqs", 1, self.max_num_seqs),
            ("max-num-active-seqs", 1, self.most_active()),
            ("prefill-schedule-interval", 1, self.prefill_schedule_interval),
            ("max-num-batched-tokens", 1, self.max_num_batched_tokens),
            ("max-model-len", 1, self.max_model_len),
        ] {
            if value < least {
                return Err(ConfigError::TooSmall { flag, least, value });
            }
        }
        if !(0.0..=1.0).contains(&self.watermark) {
            return Err(ConfigError::Watermark(self.watermark));
        }
        Ok(())
    }

    /// Checks what vLLM checks when a server starts.
    ///
    /// Before 0.29 a pool of exactly one window passes, as it does there, although the null block makes it one block
    /// short: see [`crate::scheduler::Stall`].
    ///
    /// # Errors
    /// The first setting with which vLLM would not start.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.check_machine()?;
        self.check_release()?;
        if self.max_num_batched_tokens < self.max_num_seqs {
            return Err(ConfigError::BudgetBelowSeqs {
                tokens: self.max_num_batched_tokens,
                seqs: self.max_num_seqs,
            });
        }
        if self.most_active() > self.max_num_seqs {
            return Err(ConfigError::ActiveAboveSeqs { active: self.most_active(), seqs: self.max_num_seqs });
        }
        if self.long_prefill_token_threshold > self.max_model_len {
            return Err(ConfigError::ThresholdAboveWindow {
                threshold: self.long_prefill_token_threshold,
                window: self.max_model_len,
            });
        }
        if !self.enable_chunked_prefill && self.max_num_batched_tokens < self.max_model_len {
            return Err(ConfigError::BudgetBelowWindow {
                tokens: self.max_num_batched_tokens,
                window: self.max_model_len,
            });
        }
        let counted = if self.vllm_version.start_counts_the_null_block() {
            self.usable_blocks()
        } else {
            self.num_gpu_blocks
        };
        if self.max_model_len.div_ceil(self.block_size) > counted {
            return Err(ConfigError::PoolBelowWindow {
                blocks: counted,
                block_size: self.block_size,
                window: self.max_model_len,
                fits: u64::from(counted) * u64::from(self.block_size),
            });
        }
        Ok(())
    }

    /// Checks that the release has what is asked of it.
    fn check_release(&self) -> Result<(), ConfigError> {
        let version = self.vllm_version;
        for (flag, since, asked) in [
            ("max-num-active-seqs", VllmVersion::V0_31, self.max_num_active_seqs.is_some()),
            (
                "long-prefill-token-threshold-adaptive",
                VllmVersion::V0_31,
                self.long_prefill_token_threshold_adaptive,
            ),
            // Older ones take it and heed it with data parallelism only.
            ("prefill-schedule-interval", VllmVersion::V0_33, self.prefill_schedule_interval > 1),
        ] {
            if asked && version < since {
                return Err(ConfigError::Later { flag, since, version });
            }
        }
        Ok(())
    }

    /// Requests that may run at once.
    pub fn most_active(&self) -> u32 {
        self.max_num_active_seqs.unwrap_or(self.max_num_seqs)
    }

    /// Blocks that requests can have: all but the null block.
    pub fn usable_blocks(&self) -> u32 {
        self.num_gpu_blocks - 1
    }

    /// Blocks that admission leaves free while others run: the share of *all* blocks, rounded down.
    pub fn watermark_blocks(&self) -> u32 {
        (self.watermark * f64::from(self.num_gpu_blocks)) as u32
    }

    /// Steps that may be in flight before the oldest must be waited for.
    pub fn depth(&self) -> usize {
        if self.async_scheduling { 2 } else { 1 }
    }

    /// `Maximum concurrency for N tokens per request` as vLLM logs it: the null block is not subtracted.
    pub fn max_concurrency(&self) -> f64 {
        f64::from(self.num_gpu_blocks) / f64::from(self.max_model_len.div_ceil(self.block_size))
    }

    /// `GPU KV cache size` in tokens as vLLM logs it: maximum concurrency times window, not blocks times block
    /// size.
    pub fn kv_cache_size_tokens(&self) -> u64 {
        (self.max_concurrency() * f64::from(self.max_model_len)) as u64
    }
}
