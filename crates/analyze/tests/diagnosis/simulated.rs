//! A small server and its clients, in virtual time.

use precipice_analyze::findings::Diagnosis;
use precipice_analyze::{Options, analyze};
use precipice_engine::virtual_time::{Client, Setup, simulate};
use precipice_engine::{EngineConfig, StepCost, StepCostError, StepShape, StepTime};
use precipice_record::{
    KvPoolFacts, LoadFacts, LoadKind, Manifest, Ns, RequestRow, Run, Series, SeriesId, ServerFacts, Sink,
    Source, UP,
};
use precipice_workload::{Load, Plan, Spec};

/// A step takes 15 ms, and 0.05 ms a token; the first `cold` steps take 3 s more, as if graphs were captured.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Steps {
    /// Steps that are slowed down.
    pub(crate) cold: u32,
    /// All steps take so many times as long; 0 is 1.
    pub(crate) slower: u64,
}

impl StepCost for Steps {
    fn step_time(&mut self, shape: &StepShape<'_>) -> Result<StepTime, StepCostError> {
        let cold = if self.cold > 0 { 3_000_000_000 } else { 0 };
        self.cold = self.cold.saturating_sub(1);
        let gpu = (15_000_000 + 50_000 * u64::from(shape.tokens)) * self.slower.max(1) + cold;
        Ok(StepTime { gpu: Ns(gpu), host: Ns(1_000_000) })
    }
}

/// The same run on two replicas behind one address, as a recorder sees it: the other has `share` of every gauge and
/// counter of the first, and its own requests where that is not 0.
pub(crate) fn replicated(alone: &Run, share: f64) -> Run {
    let mut run = alone.clone();
    (run.steps, run.events) = (Vec::default(), Vec::default());
    let series = alone.samples.series.len() as SeriesId;
    run.samples.series.extend(alone.samples.series.iter().map(|one| Series { source: 1, ..one.clone() }));
    for at in 0..alone.samples.len() {
        let (id, value) = (alone.samples.id[at], alone.samples.value[at]);
        let up = alone.samples.series[id as usize].name == UP;
        run.sample(alone.samples.time[at], series + id, if up { value } else { share * value });
    }
    if share > 0.0 {
        let first = alone.requests.len() as u32;
        run.requests.extend(
            alone.requests.iter().map(|row| RequestRow { request: first + row.request, ..row.clone() }),
        );
        let both = run.manifest.load.concurrency.map(|clients| 2 * clients);
        run.manifest.load.concurrency = both;
    }
    run
}

/// What to simulate. The default is a small load on a server with room: nothing is wrong with it.
#[derive(Debug, Clone)]
pub(crate) struct Ward {
    pub(crate) spec: Spec,
    pub(crate) salt: Option<&'static str>,
    pub(crate) engine: EngineConfig,
    pub(crate) client: Client,
    pub(crate) steps: Steps,
    /// The manifest as a recorder would write it may be changed by hand.
    pub(crate) options: Options,
}

impl Default for Ward {
    fn default() -> Self {
        Self {
            spec: Spec::closed(8, 40, 200, 150),
            salt: Some("test"),
            engine: EngineConfig {
                num_gpu_blocks: 1 + 400,
                max_num_seqs: 64,
                max_model_len: 2048,
                ..EngineConfig::default()
            },
            client: Client::default(),
            steps: Steps::default(),
            options: Options::default(),
        }
    }
}

impl Ward {
    /// Lives through the load and writes what the recorder would have written.
    pub(crate) fn run(&self) -> Run {
        let plan = Plan::new(self.spec.clone(), 1, self.salt, None).unwrap();
        let setup = Setup {
            engine: self.engine.clone(),
            client: self.client,
            scrape_period: Ns(200_000_000),
            ..Setup::default()
        };
        let mut run = Run::default();
        let summary = simulate(&setup, &plan, &mut self.steps.clone(), &mut run).unwrap();
        let facts = plan.facts();
        run.manifest = Manifest {
            source: Source::Simulated,
            window: summary.window,
            warnings: summary.warnings,
            load: LoadFacts {
                kind: match self.spec.load {
                    Load::Closed { .. } => LoadKind::Closed,
                    _ => LoadKind::Open,
                },
                concurrency: self.spec.load.concurrency(),
                rate_per_s: match self.spec.load {
                    Load::Open { rate, .. } => Some(rate.per_s),
                    _ => None,
                },
                warmup: u64::from(self.spec.warmup),
                salt: self.salt.map(str::to_owned),
                planned_prefix_share: facts.planned_prefix_share,
                ..LoadFacts::default()
            },
            server: ServerFacts {
                max_num_seqs: Some(self.engine.max_num_seqs),
                max_num_batched_tokens: Some(self.engine.max_num_batched_tokens),
                max_model_len: Some(self.engine.max_model_len),
                kv: Some(KvPoolFacts {
                    num_gpu_blocks: Some(u64::from(self.engine.num_gpu_blocks)),
                    block_size: Some(self.engine.block_size),
                    bytes_per_token: Some(57_344),
                    ..KvPoolFacts::default()
                }),
                ..ServerFacts::default()
            },
            ..Manifest::default()
        };
        run
    }

    /// What the run is said to suffer from.
    pub(crate) fn diagnosis(&self) -> Vec<Diagnosis> {
        diagnosis(&self.run(), &self.options)
    }
}

pub(crate) fn diagnosis(run: &Run, options: &Options) -> Vec<Diagnosis> {
    analyze(run, options).findings.diagnosis
}

/// Codes, the gravest first.
pub(crate) fn codes(found: &[Diagnosis]) -> Vec<&str> {
    found.iter().map(|illness| illness.code.name()).collect()
}

/// The illness with this code.
#[track_caller]
pub(crate) fn the<'a>(found: &'a [Diagnosis], code: &str) -> &'a Diagnosis {
    found
        .iter()
        .find(|illness| illness.code.name() == code)
        .unwrap_or_else(|| panic!("no {code} in {found:#?}"))
}

/// A figure of the evidence.
#[track_caller]
pub(crate) fn figure(illness: &Diagnosis, name: &str) -> f64 {
    illness
        .evidence
        .get(name)
        .and_then(serde_json::Value::as_f64)
        .unwrap_or_else(|| panic!("no {name} in {illness:#?}"))
}
