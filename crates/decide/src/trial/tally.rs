//! What is kept of a run that nobody writes down: the rows of requests, the scrapes, the gaps, and sums of the steps.
//!
//! What the figures mean is not known here: the whole run goes to [`precipice_analyze::brief`], and its steady part,
//! which no recorded run has, is a window of the same sums.

use super::figures::{Blocked, Figures};
use precipice_analyze::findings::Distribution;
use precipice_analyze::{Origin, Running, Unwritten, brief, reads};
use precipice_engine::EngineConfig;
use precipice_engine::catalog::Deployment;
use precipice_record::{
    ChunkRow, EventKind, EventRow, LoadKind, Ns, RequestRow, Run, Series, SeriesId, Sink, Source, StepRow,
};

/// Where the steady part begins and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Steady {
    /// It begins with this many requests ended ...
    pub(super) ends: Option<u32>,
    /// ... or with the arrival of this one.
    pub(super) arrivals: Option<u32>,
    /// It ends when this one, the last, arrives.
    pub(super) last: u32,
}

/// All sums at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Mark {
    time: Ns,
    gaps: usize,
    output_tokens: u64,
    completed: u64,
    steps: usize,
    running: f64,
    waiting: f64,
    kv: f64,
    blocked: Blocked,
    preemptions: u64,
    recomputed: u64,
    scheduled: u64,
}

/// The attempt of a request whose tokens come.
#[derive(Debug, Clone, Copy)]
struct Stream {
    attempt: u16,
    last_token: Ns,
    /// Its number among all streams.
    number: u32,
}

/// The gauges of a step.
#[derive(Debug, Clone, Copy)]
struct Gauges {
    running: u32,
    waiting: u32,
    /// Share of the pool in use.
    kv: f32,
}

/// A sink that keeps what figures are made of.
#[derive(Debug, Clone)]
pub struct Tally {
    max_num_seqs: u32,
    max_num_batched_tokens: u32,
    chunked: bool,
    steady: Option<Steady>,
    /// Manifest, requests, and the scrapes that are read.
    run: Run,
    /// By the series of the engine: its place in `run`, where it is read.
    kept: Vec<Option<SeriesId>>,
    now: Mark,
    /// When the load began: what a warm-up cost is before it.
    began: Option<Mark>,
    opened: Option<Mark>,
    closed: Option<Mark>,
    /// Measured requests that have ended at least once.
    ended: Vec<bool>,
    ends: u32,
    /// Gaps between tokens in nanoseconds, in the order of time, each with the number of its stream.
    gaps: Vec<(u64, u32)>,
    /// By request.
    streams: Vec<Option<Stream>>,
    /// By number: the attempt failed, and its gaps are nobody's.
    failed: Vec<bool>,
    /// Of each step.
    gauges: Vec<Gauges>,
}

impl Tally {
    pub(super) fn new(engine: &EngineConfig, load: LoadKind, steady: Option<Steady>) -> Self {
        let mut run = Run::default();
        run.manifest.source = Source::Simulated;
        run.manifest.load.kind = load;
        run.manifest.server.prefix_caching = Some(engine.enable_prefix_caching);
        run.manifest.server.max_num_batched_tokens = Some(engine.max_num_batched_tokens);
        Self {
            max_num_seqs: engine.max_num_seqs,
            max_num_batched_tokens: engine.max_num_batched_tokens,
            chunked: engine.enable_chunked_prefill,
            steady,
            run,
            kept: Vec::new(),
            now: Mark::default(),
            began: None,
            opened: None,
            closed: None,
            ended: Vec::new(),
            ends: 0,
            gaps: Vec::new(),
            streams: Vec::new(),
            failed: Vec::new(),
            gauges: Vec::new(),
        }
    }

    /// The figures of the run over its window, as its analysis has them. With a deployment also the counters.
    pub(super) fn whole(&mut self, window: Option<(Ns, Ns)>, counted: Option<&Deployment>) -> Figures {
        self.run.manifest.window = window;
        self.run.manifest.server.tensor_parallel_size = counted.map(|deployment| deployment.tensor_parallel);
        let from = self.began.unwrap_or_default();
        let unwritten = Unwritten {
            gaps: self.gaps_between(0, self.gaps.len()),
            preemptions: self.now.preemptions - from.preemptions,
            scheduled_tokens: self.now.scheduled - from.scheduled,
            recomputed_tokens: self.now.recomputed - from.recomputed,
        };
        let figures = Figures::of_findings(&brief(&self.run, unwritten, counted));
        let blocked = figures.duration_s.map(|seconds| self.now.blocked.since(from.blocked, seconds));
        Figures { blocked, ..figures }
    }

    /// The figures of the steady part, where the run had one.
    pub(super) fn steady(&self) -> Option<Figures> {
        let (from, to) = (self.opened?, self.closed?);
        // Too few completions say nothing of a rate.
        (to.time > from.time && to.completed >= from.completed + 4).then(|| self.between(&from, &to))
    }

    /// Latencies of the requests that were sent inside, rates of what ended inside, gauges by the steps: exact means
    /// over time, for a part may be shorter than a scrape.
    fn between(&self, from: &Mark, to: &Mark) -> Figures {
        let seconds = to.time.since(from.time).secs();
        let rate = |amount: u64| Some(amount as f64 / seconds);
        let mean = |area: f64| Some(area / seconds);
        let inside = |time: Ns| time >= from.time && time <= to.time;
        let mut sent = Running::new(Origin::of(self.run.manifest.load.kind));
        let rows = || self.run.requests.iter().filter(|row| row.measured());
        rows().filter(|row| row.sent.is_some_and(inside)).for_each(|row| sent.attempt(row));
        let sent = sent.findings(seconds);
        let prompts: u64 = rows()
            .filter(|row| row.first_token.is_some_and(inside))
            .map(|row| u64::from(row.prompt().unwrap_or(0)))
            .sum();
        let completed = to.completed - from.completed;
        let preemptions = to.preemptions - from.preemptions;
        let outputs = to.output_tokens - from.output_tokens;
        let peak = |of: fn(&Gauges) -> f64| self.gauges[from.steps..to.steps].iter().map(of).reduce(f64::max);
        Figures {
            completed,
            failed: sent.requests.failed,
            refused: sent.requests.turned_away,
            duration_s: Some(seconds),
            request_throughput: rate(completed),
            output_throughput: rate(outputs),
            total_throughput: rate(prompts + outputs),
            ttft_ms: sent.ttft_ms,
            itl_ms: Distribution::of_ns(self.gaps_between(from.gaps, to.gaps)),
            tpot_ms: sent.tpot_ms,
            e2el_ms: sent.e2el_ms,
            running_mean: mean(to.running - from.running),
            running_peak: peak(|gauges| f64::from(gauges.running)),
            waiting_mean: mean(to.waiting - from.waiting),
            waiting_peak: peak(|gauges| f64::from(gauges.waiting)),
            kv_mean: mean(to.kv - from.kv),
            kv_peak: peak(|gauges| f64::from(gauges.kv)),
            preemptions: Some(preemptions),
            preemptions_per_minute: rate(preemptions).map(|each_second| each_second * 60.0),
            recomputed_tokens: Some(to.recomputed - from.recomputed),
            blocked: Some(to.blocked.since(from.blocked, seconds)),
            counters: None,
        }
    }

    /// Gaps of attempts that did not fail.
    fn gaps_between(&self, from: usize, to: usize) -> Vec<u64> {
        let kept = self.gaps[from..to].iter().filter(|(_, stream)| !self.failed[*stream as usize]);
        kept.map(|(gap, _)| *gap).collect()
    }

    /// Counts a request when its first attempt ends.
    fn count_end(&mut self, request: u32) {
        let request = request as usize;
        if self.ended.len() <= request {
            self.ended.resize(request + 1, false);
        }
        if !std::mem::replace(&mut self.ended[request], true) {
            self.ends += 1;
        }
    }

    fn open(&mut self, time: Ns) {
        self.now.time = time;
        self.opened.get_or_insert(self.now);
    }
}

impl Blocked {
    /// Shares of so many seconds, of sums in seconds.
    fn since(self, earlier: Self, seconds: f64) -> Self {
        Self {
            kv: (self.kv - earlier.kv) / seconds,
            sequences: (self.sequences - earlier.sequences) / seconds,
            budget: (self.budget - earlier.budget) / seconds,
        }
    }
}

impl Sink for Tally {
    fn request(&mut self, row: RequestRow) {
        if !row.measured() {
            return;
        }
        self.now.completed += u64::from(row.completed());
        if !row.completed()
            && let Some(Some(stream)) = self.streams.get(row.request as usize)
            && stream.attempt == row.attempt
        {
            self.failed[stream.number as usize] = true;
        }
        self.count_end(row.request);
        if self.steady.is_some_and(|steady| steady.ends.is_some_and(|ends| self.ends >= ends)) {
            self.open(row.end);
        }
        self.run.requests.push(row);
    }

    fn chunk(&mut self, row: ChunkRow) {
        self.now.output_tokens += u64::from(row.tokens);
        let request = row.request as usize;
        if self.streams.len() <= request {
            self.streams.resize(request + 1, None);
        }
        match &mut self.streams[request] {
            Some(stream) if stream.attempt == row.attempt => {
                let last = std::mem::replace(&mut stream.last_token, row.time);
                self.gaps.push((row.time.since(last).0, stream.number));
                self.now.gaps += 1;
            }
            stream => {
                let number = self.failed.len() as u32;
                *stream = Some(Stream { attempt: row.attempt, last_token: row.time, number });
                self.failed.push(false);
            }
        }
    }

    fn series(&mut self, series: Series) -> SeriesId {
        self.kept.push(reads(&series).then(|| self.run.series(series)));
        self.kept.len() as SeriesId - 1
    }

    fn sample(&mut self, time: Ns, series: SeriesId, value: f64) {
        if let Some(series) = self.kept[series as usize] {
            self.run.sample(time, series, value);
        }
    }

    fn step(&mut self, row: StepRow) {
        let seconds = row.duration.map_or(0.0, Ns::secs);
        let (running, waiting) = (row.running.unwrap_or(0), row.waiting.unwrap_or(0));
        let kv = row.kv_usage.unwrap_or(0.0);
        self.now.running += f64::from(running) * seconds;
        self.now.waiting += f64::from(waiting) * seconds;
        self.now.kv += f64::from(kv) * seconds;
        if waiting > 0 {
            let blocked = &mut self.now.blocked;
            // Without chunks a prompt may find too few tokens left before the budget is used up.
            let no_tokens = row.tokens() >= self.max_num_batched_tokens || (!self.chunked && kv < 0.9);
            if running >= self.max_num_seqs {
                blocked.sequences += seconds;
            } else if no_tokens {
                blocked.budget += seconds;
            } else {
                blocked.kv += seconds;
            }
        }
        self.now.preemptions += u64::from(row.preemptions.unwrap_or(0));
        self.now.recomputed += u64::from(row.recomputed_tokens.unwrap_or(0));
        self.now.scheduled += u64::from(row.tokens());
        self.now.steps += 1;
        self.gauges.push(Gauges { running, waiting, kv });
    }

    fn event(&mut self, row: EventRow) {
        if !matches!(row.kind, EventKind::Queued | EventKind::Refused) {
            return;
        }
        // Warm-ups have no events.
        self.began.get_or_insert(self.now);
        let Some(steady) = self.steady else { return };
        if steady.arrivals.is_some_and(|arrivals| row.request >= arrivals) {
            self.open(row.time);
        }
        if row.request == steady.last && self.closed.is_none() {
            self.now.time = row.time;
            self.closed = Some(self.now);
        }
    }
}
