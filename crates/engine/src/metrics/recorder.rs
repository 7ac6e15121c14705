//! Where the numbers are taken.

use super::Histogram;
use crate::batch::{Batch, Entry};
use crate::config::EngineConfig;
use crate::queue_limits::Rejection;
use crate::scheduler::{Finish, Output, Outputs};
use crate::version::VllmVersion;
use precipice_record::Ns;
use std::collections::BTreeMap;
use std::ops::AddAssign;

/// vLLM's buckets for latencies of whole requests, in seconds.
const REQUEST_SECONDS: [f64; 21] = [
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0,
    960.0, 1920.0, 7680.0,
];
/// vLLM's buckets for the time to the first token, in seconds.
const TTFT_SECONDS: [f64; 22] = [
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0,
    80.0, 160.0, 640.0, 2560.0,
];
/// vLLM's buckets for the time between tokens, in seconds.
const TOKEN_SECONDS: [f64; 19] = [
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
];
/// vLLM's buckets for tokens an iteration.
const ITERATION_TOKENS: [f64; 13] =
    [1.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0];

/// vLLM's buckets for preemptions of a request.
const REQUEST_PREEMPTIONS: [f64; 7] = [1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 20.0];

/// A request that reached the server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Arrived {
    /// When the front end had it (vLLM's `arrival_time`).
    pub arrival: Ns,
    /// When the engine put it into its queue.
    pub queued: Ns,
    /// Tokens of its prompt.
    pub prompt: u32,
    /// Its `max_tokens`.
    pub max_tokens: u32,
    /// Its `n`: 1 unless several outputs were asked for.
    pub n: u32,
}

/// What a step adds to the counters of `--enable-mfu-metrics`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct StepTraffic {
    /// Floating-point operations on one GPU, by vLLM's formula.
    pub flops: f64,
    /// Bytes read from its memory.
    pub read_bytes: f64,
    /// Bytes written to it.
    pub write_bytes: f64,
}

impl AddAssign for StepTraffic {
    fn add_assign(&mut self, other: Self) {
        self.flops += other.flops;
        self.read_bytes += other.read_bytes;
        self.write_bytes += other.write_bytes;
    }
}

/// The stamps of a request that lives.
#[derive(Debug, Clone, Copy, Default)]
struct Stamps {
    arrived: Arrived,
    /// First admission.
    scheduled: Ns,
    /// Tokens found in the prefix cache at the first admission.
    cached: u32,
    first_token: Ns,
    last_token: Ns,
    preempted: u32,
}

/// The state behind `/metrics`.
#[derive(Debug, Clone)]
pub struct ServerMetrics {
    pub(super) version: VllmVersion,
    stamps: Vec<Stamps>,
    pub(super) cache_config: BTreeMap<String, String>,
    pub(super) running: u32,
    pub(super) waiting: u32,
    pub(super) skipped: u32,
    pub(super) usage: f64,
    pub(super) preemptions: u64,
    pub(super) prompt_tokens: u64,
    pub(super) cached_tokens: u64,
    pub(super) generation_tokens: u64,
    pub(super) prefix_queries: u64,
    pub(super) prefix_hits: u64,
    pub(super) stopped: u64,
    pub(super) length_capped: u64,
    pub(super) traffic: StepTraffic,
    pub(super) iteration_tokens: Histogram,
    pub(super) ttft: Histogram,
    pub(super) itl: Histogram,
    pub(super) tpot: Histogram,
    pub(super) e2e: Histogram,
    pub(super) queue: Histogram,
    pub(super) prefill: Histogram,
    pub(super) decode: Histogram,
    pub(super) inference: Histogram,
    pub(super) request_prompt: Histogram,
    pub(super) request_generation: Histogram,
    pub(super) request_max_generation: Histogram,
    pub(super) prefill_computed: Histogram,
    pub(super) params_max_tokens: Histogram,
    pub(super) params_n: Histogram,
    pub(super) request_preemptions: Histogram,
    pub(super) rejected_requests: u64,
    pub(super) rejected_tokens: u64,
}

impl ServerMetrics {
    /// All zero. The labels of `vllm:cache_config_info` that follow from the settings are filled in; `more` adds
    /// those that the engine does not know (`cache_dtype`, `gpu_memory_utilization`, ...).
    pub fn new(config: &EngineConfig, more: impl IntoIterator<Item = (String, String)>) -> Self {
        let tokens = || Histogram::of_tokens(config.max_model_len);
        let seconds = || Histogram::new(&REQUEST_SECONDS);
        Self {
            version: config.vllm_version,
            stamps: Vec::new(),
            cache_config: cache_config(config).into_iter().chain(more).collect(),
            running: 0,
            waiting: 0,
            skipped: 0,
            usage: 0.0,
            preemptions: 0,
            prompt_tokens: 0,
            cached_tokens: 0,
            generation_tokens: 0,
            prefix_queries: 0,
            prefix_hits: 0,
            stopped: 0,
            length_capped: 0,
            traffic: StepTraffic::default(),
            iteration_tokens: Histogram::new(&ITERATION_TOKENS),
            ttft: Histogram::new(&TTFT_SECONDS),
            itl: Histogram::new(&TOKEN_SECONDS),
            tpot: Histogram::new(&TOKEN_SECONDS),
            e2e: seconds(),
            queue: seconds(),
            prefill: seconds(),
            decode: seconds(),
            inference: seconds(),
            request_prompt: tokens(),
            request_generation: tokens(),
            request_max_generation: tokens(),
            prefill_computed: tokens(),
            params_max_tokens: tokens(),
            params_n: Histogram::new(&[1.0, 2.0, 5.0, 10.0, 20.0]),
            request_preemptions: Histogram::new(&REQUEST_PREEMPTIONS),
            rejected_requests: 0,
            rejected_tokens: 0,
        }
    }

    /// A request was added to the scheduler and got `slot`.
    pub fn arrived(&mut self, slot: usize, arrived: Arrived) {
        if self.stamps.len() <= slot {
            self.stamps.resize(slot + 1, Stamps::default());
        }
        self.stamps[slot] = Stamps { arrived, ..Stamps::default() };
    }

    /// A request was turned away. A limit that vLLM does not have is in no series of its.
    pub fn rejected(&mut self, rejection: Rejection) {
        match rejection {
            Rejection::Requests => self.rejected_requests += 1,
            Rejection::Tokens => self.rejected_tokens += 1,
            Rejection::Waiting => {}
        }
    }

    /// A step was decided at `at`.
    pub fn scheduled(&mut self, batch: &Batch, at: Ns) {
        for scheduled in batch.requests.iter().rev().take_while(|request| request.entry != Entry::Running) {
            if scheduled.entry == Entry::New {
                let stamps = &mut self.stamps[scheduled.slot as usize];
                stamps.scheduled = at;
                stamps.cached = scheduled.computed;
            }
        }
    }

    /// The result of a step was taken in. `engine_at` is when the engine sent it, `front_at` when the front end
    /// handled it, `usage` the share of the KV pool in use, `traffic` the step's part of the MFU counters, where
    /// these are on.
    pub fn updated(
        &mut self,
        outputs: &Outputs,
        usage: f64,
        traffic: Option<StepTraffic>,
        engine_at: Ns,
        front_at: Ns,
    ) {
        self.running = outputs.running;
        self.waiting = outputs.waiting;
        self.skipped = outputs.skipped;
        self.usage = usage;
        self.prefix_queries += outputs.queries.tokens;
        self.prefix_hits += outputs.queries.hits;
        self.traffic += traffic.unwrap_or_default();
        if outputs.tokens.is_empty() {
            return;
        }
        let mut computed_prompt = 0;
        for output in &outputs.tokens {
            computed_prompt += u64::from(self.token(output, engine_at, front_at));
        }
        let generated = outputs.tokens.len() as u64;
        self.generation_tokens += generated;
        self.iteration_tokens.observe((computed_prompt + generated) as f64);
    }

    /// Takes one token in; returns the prompt tokens that vLLM credits to this iteration.
    fn token(&mut self, output: &Output, engine_at: Ns, front_at: Ns) -> u32 {
        let stamps = &mut self.stamps[output.slot as usize];
        let arrived = stamps.arrived;
        self.preemptions += u64::from(output.turns.preempted);
        stamps.preempted += output.turns.preempted;
        let mut computed_prompt = 0;
        if output.tokens == 1 {
            self.ttft.observe(front_at.since(arrived.arrival).secs());
            self.prompt_tokens += u64::from(arrived.prompt);
            self.cached_tokens += u64::from(stamps.cached);
            computed_prompt = arrived.prompt - stamps.cached;
            stamps.first_token = engine_at;
        } else {
            self.itl.observe(engine_at.since(stamps.last_token).secs());
        }
        stamps.last_token = engine_at;
        if let Some(finish) = output.finish {
            let stamps = *stamps;
            self.finished(finish, &stamps, output.tokens, front_at);
        }
        computed_prompt
    }

    fn finished(&mut self, finish: Finish, stamps: &Stamps, tokens: u32, front_at: Ns) {
        let arrived = stamps.arrived;
        match finish {
            Finish::Stop => self.stopped += 1,
            Finish::Length => self.length_capped += 1,
        }
        let decode = stamps.last_token.since(stamps.first_token).secs();
        self.e2e.observe(front_at.since(arrived.arrival).secs());
        self.queue.observe(stamps.scheduled.since(arrived.queued).secs());
        self.prefill.observe(stamps.first_token.since(stamps.scheduled).secs());
        self.decode.observe(decode);
        self.inference.observe(stamps.last_token.since(stamps.scheduled).secs());
        self.tpot.observe(if tokens > 1 { decode / f64::from(tokens - 1) } else { 0.0 });
        self.request_prompt.observe(f64::from(arrived.prompt));
        self.request_generation.observe(f64::from(tokens));
        self.request_max_generation.observe(f64::from(tokens));
        self.prefill_computed.observe(f64::from(arrived.prompt - stamps.cached));
        self.params_max_tokens.observe(f64::from(arrived.max_tokens));
        self.params_n.observe(f64::from(arrived.n));
        self.request_preemptions.observe(f64::from(stamps.preempted));
    }
}

/// Labels of `vllm:cache_config_info` that the settings tell, as Python prints them.
fn cache_config(config: &EngineConfig) -> [(String, String); 5] {
    let python = |yes: bool| if yes { "True" } else { "False" }.to_owned();
    [
        ("block_size".to_owned(), config.block_size.to_string()),
        ("enable_prefix_caching".to_owned(), python(config.enable_prefix_caching)),
        ("kv_cache_max_concurrency".to_owned(), config.max_concurrency().to_string()),
        ("kv_cache_size_tokens".to_owned(), config.kv_cache_size_tokens().to_string()),
        ("num_gpu_blocks".to_owned(), config.num_gpu_blocks.to_string()),
    ]
}
