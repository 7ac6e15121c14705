//! Whole runs in virtual time, with a driver as small as the questions of these tests: one engine, one cost model,
//! clients without a network.

use precipice_engine::StepCost;
use precipice_engine::catalog::StepWork;
use precipice_engine::config::EngineConfig;
use precipice_engine::kv::{Content, unique_stream};
use precipice_engine::scheduler::{EngineLoop, NewRequest};
use precipice_record::Ns;
use std::collections::VecDeque;

/// A request to send.
#[derive(Clone)]
pub(crate) struct Ask {
    /// Arrival; ignored in a closed loop.
    pub(crate) at: Ns,
    pub(crate) content: Content,
    pub(crate) output: u32,
}

impl Ask {
    pub(crate) fn plain(number: u32, prompt: u32, output: u32) -> Self {
        let runs = vec![precipice_workload::TokenRun {
            stream: unique_stream(1, u64::from(number)),
            start: 0,
            len: prompt,
        }];
        Self {
            at: Ns::ZERO,
            content: Content::from_runs(runs, unique_stream(2, u64::from(number)), 0),
            output,
        }
    }
}

/// What came of it.
pub(crate) struct Replay {
    pub(crate) seconds: f64,
    pub(crate) output_tokens: u64,
    pub(crate) ttft: Vec<f64>,
    pub(crate) tpot: Vec<f64>,
    pub(crate) itl: Vec<f64>,
    pub(crate) running_mean: f64,
    pub(crate) preemptions: u64,
    pub(crate) steps: u64,
    pub(crate) work: StepWork,
}

impl Replay {
    pub(crate) fn throughput(&self) -> f64 {
        self.output_tokens as f64 / self.seconds
    }
}

pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Sends `asks`, no more than `concurrency` at once if it is given, else at their arrivals.
pub(crate) fn replay(
    config: EngineConfig,
    cost: &mut dyn StepCost,
    asks: &[Ask],
    concurrency: Option<usize>,
) -> Replay {
    let mut engine = EngineLoop::new(config).unwrap();
    let mut ends: VecDeque<Ns> = VecDeque::new();
    let (mut now, mut free) = (Ns::ZERO, Ns::ZERO);
    let (mut sent, mut ended, mut steps) = (0usize, 0usize, 0);
    let mut sent_at = vec![Ns::ZERO; asks.len()];
    let mut first = vec![Ns::ZERO; asks.len()];
    let mut last = vec![Ns::ZERO; asks.len()];
    let mut itl = Vec::new();
    let mut area = 0.0;
    let mut work = StepWork::default();
    loop {
        while sent < asks.len()
            && concurrency.map_or_else(|| asks[sent].at <= now, |limit| sent - ended < limit)
        {
            let request = NewRequest {
                key: sent as u64,
                content: asks[sent].content.clone(),
                max_tokens: asks[sent].output,
                eos_at: None,
                priority: 0,
                arrival: sent as u64,
            };
            engine.add(request).unwrap();
            sent_at[sent] = if concurrency.is_some() { now } else { asks[sent].at };
            sent += 1;
        }
        if engine.wants_schedule() {
            let batch = engine.schedule();
            let mut end = free.max(now);
            if batch.tokens > 0 {
                let time = cost.step_time(&batch.shape()).unwrap();
                now = now + time.host;
                let start = free.max(now);
                end = start + time.gpu;
                steps += 1;
                work += StepWork::of(&batch.shape());
                area += f64::from(batch.running) * end.since(free).secs();
                free = end;
            }
            ends.push_back(end);
        } else if !engine.wants_result() {
            if sent == asks.len() {
                break;
            }
            now = asks[sent].at.max(now);
            free = free.max(now);
        }
        if engine.wants_result() {
            now = now.max(ends.pop_front().unwrap());
            for output in &engine.complete().unwrap().tokens {
                let at = output.key as usize;
                if output.tokens == 1 {
                    first[at] = now;
                } else {
                    itl.push(now.since(last[at]).secs());
                }
                last[at] = now;
                ended += usize::from(output.finish.is_some());
            }
        }
    }
    let count = asks.len();
    let tokens = |at: usize| f64::from(asks[at].output);
    Replay {
        seconds: now.secs(),
        output_tokens: asks.iter().map(|ask| u64::from(ask.output)).sum(),
        ttft: (0..count).map(|at| first[at].since(sent_at[at]).secs()).collect(),
        tpot: (0..count)
            .filter(|at| asks[*at].output > 1)
            .map(|at| last[at].since(first[at]).secs() / (tokens(at) - 1.0))
            .collect(),
        itl,
        running_mean: area / now.secs(),
        preemptions: engine.scheduler().preemptions(),
        steps,
        work,
    }
}
