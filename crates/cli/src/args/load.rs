//! What to ask, and when.

use crate::units;
use precipice_workload::{Gaps, Lengths, Priorities, Rate, Seconds, Stages};
use std::path::PathBuf;

/// The load. The defaults are the overload test that the project started from: 64 clients, 128 requests of 6144
/// prompt and 2048 output tokens.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Load")]
pub(crate) struct LoadArgs {
    /// Clients of a closed loop: each sends its next request when its last one ended [default: 64]
    #[arg(short = 'c', long, value_name = "N", value_parser = units::count)]
    pub(crate) concurrency: Option<u32>,
    /// Requests to send, warm-up apart [default: twice the concurrency, unless --duration or --data says]
    #[arg(short = 'n', long, value_name = "N", value_parser = units::count)]
    pub(crate) requests: Option<u32>,
    /// Open loop: requests per second, sent whatever happens to the ones before: 8, 2..20 (a ramp), 2..20@60s
    #[arg(short = 'r', long, value_name = "RATE")]
    pub(crate) rate: Option<Rate>,
    /// Open loop in stages, a rate for a time: 0.5x@60s,3x@60s,0.5x@120s; x is the server's capacity (--capacity; simulated:
    /// found by a trial)
    #[arg(long, value_name = "STAGES", conflicts_with_all = ["rate", "concurrency", "duration"])]
    pub(crate) stages: Option<Stages>,
    /// What the server completes, in requests a second: what x means in --stages
    #[arg(long, value_name = "RATE", value_parser = units::positive, requires = "stages")]
    pub(crate) capacity: Option<f64>,
    /// Gaps between arrivals of an open loop: poisson, constant, gamma:SHAPE
    #[arg(long, value_name = "PROCESS", default_value = "poisson")]
    pub(crate) arrivals: Gaps,
    /// Same as --arrivals gamma:SHAPE (vLLM's name); below 1 is bursty
    #[arg(long, value_name = "SHAPE", value_parser = units::positive)]
    pub(crate) burstiness: Option<f64>,
    /// Open loop: cap on requests in flight; requests above it wait in the client, and the wait counts in their latency
    #[arg(long, value_name = "N", value_parser = units::count)]
    pub(crate) max_in_flight: Option<u32>,
    /// Stop sending after this long; requests in flight are finished
    #[arg(short = 'd', long, value_name = "TIME")]
    pub(crate) duration: Option<Seconds>,
    /// Spread the starts of the clients over this time instead of sending the first wave at once
    #[arg(long, value_name = "TIME")]
    pub(crate) stagger: Option<Seconds>,
    /// Warm-up requests with prompts of their own, before and outside the measured window
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) warmup: u32,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,

    /// Prompt tokens: 6144, 6k, uniform:100-200, lognormal:512,0.8 [default: 6144]
    #[arg(long, value_name = "LENGTHS")]
    pub(crate) input_tokens: Option<Lengths>,
    /// Output tokens, in the same forms [default: 2048]
    #[arg(long, value_name = "LENGTHS")]
    pub(crate) output_tokens: Option<Lengths>,
    /// Prompts, lengths or a timed trace from a file: JSONL, ShareGPT, Mooncake or vLLM trace, CSV (gzip too)
    #[arg(long, value_name = "FILE", visible_alias = "dataset")]
    pub(crate) data: Option<PathBuf>,
    /// Take the entries of --data in random order
    #[arg(long, requires = "data")]
    pub(crate) shuffle: bool,
    /// Replay the times of --data this many times faster; without --rate or --concurrency a timed file is replayed
    #[arg(long, value_name = "X", value_parser = units::positive, requires = "data")]
    pub(crate) trace_speed: Option<f64>,
    /// Tokens that one hash id of --data stands for [default: the size that fits all lines]
    #[arg(long, value_name = "N", value_parser = units::tokens, requires = "data")]
    pub(crate) trace_block_tokens: Option<u32>,
    /// Seconds that one unit of the file's timestamps stands for [default: 0.001 in JSON, 1 in CSV]
    #[arg(long, value_name = "SECONDS", value_parser = units::positive, requires = "data")]
    pub(crate) trace_time_unit: Option<f64>,
    /// Classes of urgency and their weights, smaller is more urgent: 0=80,10=20
    #[arg(long, value_name = "CLASSES")]
    pub(crate) priority: Option<Priorities>,
    /// Tokens at the beginning that requests share; part of --input-tokens
    #[arg(long, value_name = "N", value_parser = units::tokens)]
    pub(crate) prefix_tokens: Option<u32>,
    /// How many different shared prefixes there are
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = units::count)]
    pub(crate) prefix_groups: u32,
    /// Choose among the prefixes by Zipf's law with this exponent instead of evenly
    #[arg(long, value_name = "EXPONENT", value_parser = units::positive, requires = "prefix_tokens")]
    pub(crate) prefix_zipf: Option<f64>,
    /// Send the same prompts as every other run with this seed: the server's prefix cache may be warm
    #[arg(long)]
    pub(crate) reuse_prompts: bool,
}
