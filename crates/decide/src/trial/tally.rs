//! The rows of a run, kept as sums.

use super::figures::{Blocked, Counters, Figures};
use precipice_analyze::findings::Distribution;
use precipice_analyze::stats::order::{Place, settle};
use precipice_engine::EngineConfig;
use precipice_record::{
    ChunkRow, EventKind, EventRow, FailureKind, Ns, Phase, RequestRow, Series, SeriesId, Sink, StepRow,
};

/// When a run has forgotten how it began, and which request is sent last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Steady {
    /// It begins with this many requests ended ...
    pub(super) ends: Option<u32>,
    /// ... or with the arrival of this one.
    pub(super) arrivals: Option<u32>,
    /// It ends when this one is sent.
    pub(super) last: u32,
}

/// All sums at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Mark {
    time: Ns,
    gaps: usize,
    output_tokens: u64,
    completed: u64,
    prompt_tokens_of_completed: u64,
    output_tokens_of_completed: u64,
    steps: usize,
    running: f64,
    waiting: f64,
    kv: f64,
    blocked: Blocked,
    preemptions: u64,
    recomputed: u64,
    scheduled: u64,
}

/// A request, as its last attempt so far ended.
#[derive(Debug, Clone, Copy)]
struct Ended {
    sent: Ns,
    first_token: Option<Ns>,
    last_token: Option<Ns>,
    output_tokens: u32,
    completed: bool,
    refused: bool,
}

/// The attempt of a request whose tokens come.
#[derive(Debug, Clone, Copy)]
struct Stream {
    attempt: u16,
    last_token: Ns,
    /// Its number among all streams.
    number: u32,
}

/// Counters that are kept, by the name of their series.
const COUNTERS: [&str; 5] = [
    "vllm:iteration_tokens_total_sum",
    "vllm:prompt_tokens_total",
    "vllm:request_prefill_kv_computed_tokens_sum",
    "vllm:num_preemptions_total",
    "vllm:estimated_flops_per_gpu_total",
];

/// A sink that keeps what figures are made of.
#[derive(Debug, Clone)]
pub struct Tally {
    max_num_seqs: u32,
    max_num_batched_tokens: u32,
    chunked: bool,
    steady: Option<Steady>,
    now: Mark,
    opened: Option<Mark>,
    closed: Option<Mark>,
    first_sent: Option<Ns>,
    last_end: Ns,
    /// Gaps between tokens in nanoseconds, in the order of time, each with the number of its stream.
    gaps: Vec<(u64, u32)>,
    /// By request.
    streams: Vec<Option<Stream>>,
    /// By number: the attempt failed, and its gaps are nobody's.
    failed: Vec<bool>,
    ended: Vec<Ended>,
    /// Where in `ended` a request is.
    places: Vec<Option<u32>>,
    /// Running and waiting of each step, and the share of the pool in use.
    gauges: Vec<(u32, u32, f32)>,
    /// Series that are counters, with the last value of each.
    counters: [Option<(SeriesId, f64)>; COUNTERS.len()],
    series: SeriesId,
    expected_tokens: u64,
}

impl Tally {
    pub(super) fn new(engine: &EngineConfig, steady: Option<Steady>) -> Self {
        Self {
            max_num_seqs: engine.max_num_seqs,
            max_num_batched_tokens: engine.max_num_batched_tokens,
            chunked: engine.enable_chunked_prefill,
            steady,
            now: Mark::default(),
            opened: None,
            closed: None,
            first_sent: None,
            last_end: Ns::ZERO,
            gaps: Vec::new(),
            streams: Vec::new(),
            failed: Vec::new(),
            ended: Vec::new(),
            places: Vec::new(),
            gauges: Vec::new(),
            counters: [None; COUNTERS.len()],
            series: 0,
            expected_tokens: 0,
        }
    }

    /// The figures from the first send to the last end. `expected_flops` is what [`Counters`] says of it.
    pub(super) fn whole(&self, expected_flops: Option<&f64>) -> Figures {
        let first = self.first_sent.unwrap_or_default();
        let from = Mark { time: first, ..Mark::default() };
        let to = Mark { time: self.last_end, ..self.now };
        let mut figures = self.between(&from, &to);
        let value = |place: usize| self.counters[place].map(|(_, value)| value);
        figures.counters = expected_flops.map(|flops| Counters {
            expected_tokens: self.expected_tokens,
            iteration_tokens: value(0),
            prompt_tokens: value(1),
            prefill_kv_computed: value(2),
            preemptions: value(3),
            scheduled_tokens: Some(self.now.scheduled),
            expected_flops: Some(*flops),
            flops: value(4),
        });
        figures
    }

    /// The figures of the steady part, where the run had one.
    pub(super) fn steady(&self) -> Option<Figures> {
        let (from, to) = (self.opened?, self.closed?);
        // Too few completions say nothing of a rate.
        (to.time > from.time && to.completed >= from.completed + 4).then(|| self.between(&from, &to))
    }

    fn between(&self, from: &Mark, to: &Mark) -> Figures {
        let seconds = to.time.since(from.time).secs();
        let rate = |amount: u64| (seconds > 0.0).then(|| amount as f64 / seconds);
        let mean = |area: f64| (seconds > 0.0).then(|| area / seconds);
        // Requests belong to the window in which they were sent; the last window includes its end.
        let mine = |ended: &&Ended| ended.sent >= from.time && ended.sent <= to.time;
        let inside = || self.ended.iter().filter(mine);
        let good = || inside().filter(|ended| ended.completed);
        let completed = to.completed - from.completed;
        let preemptions = to.preemptions - from.preemptions;
        let gauges = &self.gauges[from.steps..to.steps];
        let whole_tokens = to.output_tokens - from.output_tokens;
        let prompts = to.prompt_tokens_of_completed - from.prompt_tokens_of_completed;
        let outputs = to.output_tokens_of_completed - from.output_tokens_of_completed;
        Figures {
            completed,
            failed: inside().filter(|ended| !ended.completed).count() as u64,
            refused: inside().filter(|ended| ended.refused).count() as u64,
            duration_s: (seconds > 0.0).then_some(seconds),
            request_throughput: rate(completed),
            output_throughput: rate(whole_tokens),
            total_throughput: rate(prompts + outputs),
            ttft_ms: distribution(good().filter_map(|e| Some(e.first_token?.since(e.sent).0)).collect()),
            itl_ms: distribution(self.gaps_between(from.gaps, to.gaps)),
            tpot_ms: distribution(good().filter_map(Ended::tpot_ns).collect()),
            e2el_ms: distribution(good().filter_map(|e| Some(e.last_token?.since(e.sent).0)).collect()),
            running_mean: mean(to.running - from.running),
            running_peak: gauges.iter().map(|gauge| f64::from(gauge.0)).reduce(f64::max),
            waiting_mean: mean(to.waiting - from.waiting),
            waiting_peak: gauges.iter().map(|gauge| f64::from(gauge.1)).reduce(f64::max),
            kv_mean: mean(to.kv - from.kv),
            kv_peak: gauges.iter().map(|gauge| f64::from(gauge.2)).reduce(f64::max),
            preemptions: Some(preemptions),
            preemptions_per_minute: rate(preemptions).map(|each_second| each_second * 60.0),
            recomputed_tokens: Some(to.recomputed - from.recomputed),
            blocked: (seconds > 0.0).then(|| Blocked {
                kv: (to.blocked.kv - from.blocked.kv) / seconds,
                sequences: (to.blocked.sequences - from.blocked.sequences) / seconds,
                budget: (to.blocked.budget - from.blocked.budget) / seconds,
            }),
            counters: None,
        }
    }

    /// Gaps of attempts that did not fail.
    fn gaps_between(&self, from: usize, to: usize) -> Vec<u64> {
        let kept = self.gaps[from..to].iter().filter(|(_, stream)| !self.failed[*stream as usize]);
        kept.map(|(gap, _)| *gap).collect()
    }

    /// Keeps how an attempt ended; a further attempt of a request takes the place of the one before.
    fn keep(&mut self, request: u32, ended: Ended) {
        let request = request as usize;
        if self.places.len() <= request {
            self.places.resize(request + 1, None);
        }
        if let Some(place) = self.places[request] {
            self.ended[place as usize] = ended;
        } else {
            self.places[request] = Some(self.ended.len() as u32);
            self.ended.push(ended);
        }
    }

    fn open(&mut self, time: Ns) {
        self.now.time = time;
        self.opened.get_or_insert(self.now);
    }
}

impl Ended {
    fn tpot_ns(&self) -> Option<u64> {
        let after_first = u64::from(self.output_tokens.checked_sub(1).filter(|tokens| *tokens > 0)?);
        Some(self.last_token?.since(self.first_token?).0 / after_first)
    }
}

impl Sink for Tally {
    fn request(&mut self, row: RequestRow) {
        if row.phase == Phase::Warmup {
            return;
        }
        let completed = row.completed();
        let (prompt, output) = (row.prompt().unwrap_or(0), row.output_tokens.unwrap_or(0));
        if completed {
            self.now.completed += 1;
            self.now.prompt_tokens_of_completed += u64::from(prompt);
            self.now.output_tokens_of_completed += u64::from(output);
            self.expected_tokens += u64::from(prompt) + u64::from(output);
        }
        self.last_end = self.last_end.max(row.end);
        let sent = row.sent.unwrap_or(row.intended);
        self.first_sent = Some(self.first_sent.map_or(sent, |first| first.min(sent)));
        if !completed
            && let Some(Some(stream)) = self.streams.get(row.request as usize)
            && stream.attempt == row.attempt
        {
            self.failed[stream.number as usize] = true;
        }
        let ended = Ended {
            sent: row.intended,
            first_token: row.first_token,
            last_token: row.last_token,
            output_tokens: output,
            completed,
            refused: row.failure.is_some_and(FailureKind::turned_away),
        };
        self.keep(row.request, ended);
        let all = self.ended.len() as u32;
        if self.steady.is_some_and(|steady| steady.ends.is_some_and(|ends| all >= ends)) {
            self.open(row.end);
        }
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
        let id = self.series;
        self.series += 1;
        if let Some(place) = COUNTERS.iter().position(|name| *name == series.name) {
            self.counters[place] = Some((id, 0.0));
        }
        id
    }

    fn sample(&mut self, _: Ns, series: SeriesId, value: f64) {
        for counter in self.counters.iter_mut().flatten() {
            if counter.0 == series {
                counter.1 = value;
            }
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
        self.gauges.push((running, waiting, kv));
    }

    fn event(&mut self, row: EventRow) {
        let Some(steady) = self.steady else { return };
        if !matches!(row.kind, EventKind::Queued | EventKind::Refused) {
            return;
        }
        if steady.arrivals.is_some_and(|arrivals| row.request >= arrivals) {
            self.open(row.time);
        }
        if row.request == steady.last && self.closed.is_none() {
            self.now.time = row.time;
            self.closed = Some(self.now);
        }
    }
}

/// Nanoseconds to a distribution in milliseconds.
fn distribution(mut values: Vec<u64>) -> Distribution {
    const ASKED: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 0.9999];
    let n = values.len();
    if n == 0 {
        return Distribution::default();
    }
    let mean = values.iter().map(|value| *value as f64).sum::<f64>() / n as f64;
    let places = ASKED.map(|q| Place::of(n, q));
    let mut ranks: Vec<usize> = places.iter().flatten().flat_map(|place| [place.low, place.high()]).collect();
    ranks.extend([0, n - 1]);
    settle(&mut values, &mut ranks);
    let ms = |ns: f64| ns / 1e6;
    let at = |place: Option<Place>| {
        place.map(|place| ms(place.between(values[place.low] as f64, values[place.high()] as f64)))
    };
    Distribution {
        n: n as u64,
        mean: Some(ms(mean)),
        p50: at(places[0]),
        p90: at(places[1]),
        p99: at(places[2]),
        p999: at(places[3]),
        p9999: at(places[4]),
        max: Some(ms(values[n - 1] as f64)),
        min: Some(ms(values[0] as f64)),
        ci95: None,
    }
}

#[cfg(test)]
mod tests {
    use super::distribution;

    #[test]
    fn distribution_are_numpys_in_milliseconds() {
        let of = distribution([3, 1, 4, 1, 5, 9, 2, 6].map(|ms| ms * 1_000_000).to_vec());
        assert_eq!((of.n, of.p50, of.max), (8, Some(3.5), Some(9.0)));
        assert!((of.p90.unwrap() - 6.9).abs() < 1e-9);
        assert_eq!(distribution(Vec::new()).p50, None);
    }
}
