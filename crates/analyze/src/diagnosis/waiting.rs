//! What requests waited for: every scrape at which some wait is put down to one cause.

use crate::findings::CapacityFindings;
use crate::server::grid::Grid;
use crate::stats::order::{mean, median};
use precipice_record::{Run, StepRow};

/// Requests in the queue on average from which on there is a queue: less than half a request at a time is what
/// arrivals between two steps make.
pub const QUEUED: f64 = 0.5;

/// Where the size of the pool is not known, usage from which on it counts as full: a pool from which requests are
/// thrown out swings between about 0.93 and 1.
const FULL: f64 = 0.9;

/// Fewer scrapes with a queue than these tell nothing.
const SCRAPES: usize = 3;

/// Share of the waiting that a cause must have to be an illness of its own.
pub(super) const MATTERS: f64 = 1.0 / 3.0;

/// Share of the scrapes with a queue from which on it is the run's; a burst that is over sooner is only that.
pub(super) const LASTING: f64 = 0.5;

/// Share of the step budget that the largest step must have reached for the budget to have held anybody up.
const FILLED: f64 = 0.9;

/// Where the limit is not known: share of the scrapes at which exactly as many run as ever do, from which on that
/// number is taken for the limit, and fewest such scrapes.
const PLATEAU: (f64, usize) = (0.9, 10);

/// The waiting of a run, divided by cause. Shares are of the request-seconds of waiting and add up to 1 where KV
/// usage and limit are known.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Waiting {
    /// Mean of the waiting gauge, all replicas together.
    pub(super) mean: f64,
    /// Share of the scrapes at which some waited, at whatever replica.
    pub(super) of_scrapes: f64,
    /// KV was so full that the mean prompt did not fit. Absent where KV usage is not reported.
    pub(super) for_kv: Option<f64>,
    /// KV had room (or is not reported), and as many ran as may. Absent where the limit is not known.
    pub(super) for_place: Option<f64>,
    /// KV had room and so had the batch, and what could be admitted was more than a step takes: prompts wait for the
    /// token budget of a step. The rest, where the three are known, is of gauges that were read between two steps: the
    /// next step admits what waits, and a long one shows the moment before it until it ends.
    pub(super) for_prefill: Option<f64>,
    /// Median KV usage of a replica at which some waited.
    pub(super) kv_usage: Option<f64>,
    /// Median of running at such a replica.
    pub(super) running: Option<f64>,
    /// Most sequences at once of a replica.
    pub(super) limit: Option<f64>,
    /// The limit is the server's word, not read off the gauge.
    pub(super) limit_reported: bool,
}

/// What one replica showed at a moment at which some waited there.
struct Scrape {
    waiting: f64,
    running: f64,
    kv_usage: Option<f64>,
    full: Option<bool>,
}

impl Waiting {
    /// `preempted`: some were thrown out, and wait at the head of the queue with more than their prompts.
    ///
    /// Each replica is judged by its own gauges: nobody waits for a place or a block of another one.
    pub(super) fn of(run: &Run, grid: &Grid, capacity: &CapacityFindings, preempted: bool) -> Option<Self> {
        let waiting_mean = grid.summary(&grid.waiting).mean?;
        let all = grid.in_window(&grid.waiting).count();
        let full_at = full_at(run, capacity, preempted);
        let queued = |at: usize| {
            let queues = grid.replicas.iter().filter_map(move |gauges| gauges.waiting[at]);
            queues.filter(|&waiting| waiting >= 1.0).count()
        };
        let moments = grid.in_window(&grid.waiting).filter(|&(at, _)| queued(at) > 0).count();
        let scrapes: Vec<Scrape> = grid
            .replicas
            .iter()
            .flat_map(|gauges| {
                grid.in_window(&gauges.waiting).map(move |(at, waiting)| (gauges, at, waiting))
            })
            .filter(|&(_, _, waiting)| waiting >= 1.0)
            .filter_map(|(gauges, at, waiting)| {
                let kv_usage = gauges.kv_usage[at];
                let full = kv_usage.map(|usage| usage >= full_at);
                Some(Scrape { waiting, running: gauges.running[at]?, kv_usage, full })
            })
            .collect();
        if waiting_mean < QUEUED || moments < SCRAPES || scrapes.is_empty() {
            return None;
        }
        let reported = run.manifest.server.max_num_seqs.map(f64::from);
        let limit = reported.or_else(|| plateau(&scrapes));
        let total: f64 = scrapes.iter().map(|scrape| scrape.waiting).sum();
        let share = |of: &dyn Fn(&Scrape) -> bool| {
            scrapes.iter().filter(|scrape| of(scrape)).map(|scrape| scrape.waiting).sum::<f64>() / total
        };
        let at_limit = |scrape: &Scrape| limit.is_some_and(|limit| scrape.running >= 0.95 * limit);
        let kv_known = scrapes.iter().any(|scrape| scrape.full.is_some());
        let room = |scrape: &Scrape| scrape.full == Some(false);
        let budget = Budget::of(run, capacity);
        let known = |values: Vec<f64>| median(&values);
        Some(Self {
            mean: waiting_mean,
            of_scrapes: moments as f64 / all as f64,
            for_kv: kv_known.then(|| share(&|scrape| scrape.full == Some(true))),
            for_place: limit.map(|_| share(&|scrape| scrape.full != Some(true) && at_limit(scrape))),
            for_prefill: (kv_known && limit.is_some())
                .then(|| share(&|scrape| room(scrape) && !at_limit(scrape) && budget.binds(scrape))),
            kv_usage: known(scrapes.iter().filter_map(|scrape| scrape.kv_usage).collect()),
            running: known(scrapes.iter().map(|scrape| scrape.running).collect()),
            limit,
            limit_reported: reported.is_some(),
        })
    }
}

/// The token budget of a step, and what may be asked of it.
struct Budget {
    /// Most tokens of a step; absent where it is not known, or where the log shows that no step came near it.
    tokens: Option<f64>,
    never_filled: bool,
    prompt: Option<f64>,
    pool: Option<f64>,
}

impl Budget {
    fn of(run: &Run, capacity: &CapacityFindings) -> Self {
        let tokens = run.manifest.server.max_num_batched_tokens.map(f64::from);
        let prompts: Vec<f64> = run
            .requests
            .iter()
            .filter(|row| row.measured())
            .filter_map(|row| row.prompt().map(f64::from))
            .collect();
        let largest = run.steps.iter().map(StepRow::tokens).max();
        Self {
            tokens,
            never_filled: largest
                .zip(tokens)
                .is_some_and(|(largest, budget)| f64::from(largest) < FILLED * budget),
            prompt: mean(&prompts),
            pool: capacity.pool_of_one().map(|tokens| tokens as f64),
        }
    }

    /// Whether more prompt tokens could be admitted than the next step takes. Where the budget is not known, they may.
    fn binds(&self, scrape: &Scrape) -> bool {
        let Some(budget) = self.tokens else { return true };
        let free = self.pool.zip(scrape.kv_usage).map(|(pool, usage)| pool * (1.0 - usage));
        let asked = self.prompt.map(|prompt| prompt * scrape.waiting);
        let admitted = [free, asked].into_iter().flatten().reduce(f64::min);
        !self.never_filled && admitted.is_none_or(|tokens| tokens + scrape.running > budget)
    }
}

/// KV usage above which the next request does not fit: vLLM admits a request only when all of its tokens so far do.
/// That is its prompt, or for one that was thrown out the context of a running request.
fn full_at(run: &Run, capacity: &CapacityFindings, preempted: bool) -> f64 {
    let pool = capacity.pool_of_one().map(|tokens| tokens as f64);
    let measured = run.requests.iter().filter(|row| row.measured());
    let prompts: Vec<f64> = measured.filter_map(|row| row.prompt().map(f64::from)).collect();
    let context = capacity.resident.footprint_tokens.filter(|_| preempted);
    let next = mean(&prompts).map(|prompt| prompt.max(context.unwrap_or(0.0)));
    pool.zip(next).map_or(FULL, |(pool, next)| 1.0 - next / pool)
}

/// The number that runs almost always while some wait and KV has room (or is not reported).
fn plateau(scrapes: &[Scrape]) -> Option<f64> {
    let free: Vec<f64> = scrapes.iter().filter(|s| s.full != Some(true)).map(|s| s.running).collect();
    let peak = free.iter().copied().reduce(f64::max)?;
    let there = free.iter().filter(|&&running| running == peak).count();
    (free.len() >= PLATEAU.1 && there as f64 >= PLATEAU.0 * free.len() as f64).then_some(peak)
}

#[cfg(test)]
mod tests {
    use super::{Budget, Scrape, plateau};

    fn scrapes(running: &[f64], full: Option<bool>) -> Vec<Scrape> {
        running.iter().map(|&running| Scrape { waiting: 3.0, running, kv_usage: None, full }).collect()
    }

    #[test]
    fn a_limit_is_read_off_a_plateau_and_off_nothing_else() {
        let flat = [[4.0; 18].as_slice(), &[3.0, 3.0]].concat();
        assert_eq!(plateau(&scrapes(&flat, None)), Some(4.0));
        let wavy: Vec<f64> = (0..20).map(|at| f64::from(14 + at % 5)).collect();
        assert_eq!(plateau(&scrapes(&wavy, None)), None);
        assert_eq!(plateau(&scrapes(&flat, Some(true))), None);
        assert_eq!(plateau(&scrapes(&flat[..5], None)), None);
    }

    #[test]
    fn a_budget_holds_up_only_what_could_be_admitted() {
        let scrape = |waiting, kv_usage| Scrape { waiting, running: 2.0, kv_usage, full: Some(false) };
        let of = |pool| Budget { tokens: Some(2048.0), never_filled: false, prompt: Some(512.0), pool };
        // A pool of 1,888 tokens cannot be held up by a budget of 2,048.
        assert!(!of(Some(1888.0)).binds(&scrape(30.0, Some(0.0))));
        assert!(of(Some(100_000.0)).binds(&scrape(30.0, Some(0.5))));
        // Three prompts of 512 go into the next step together.
        assert!(!of(Some(100_000.0)).binds(&scrape(3.0, Some(0.5))));
        assert!(!Budget { never_filled: true, ..of(Some(100_000.0)) }.binds(&scrape(30.0, Some(0.5))));
        assert!(Budget { tokens: None, ..of(None) }.binds(&scrape(1.0, None)));
    }
}
