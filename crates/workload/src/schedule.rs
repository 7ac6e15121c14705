//! Arrival times, made from the seed before anything is sent.

use crate::seed::{Purpose, SeedTree};
use crate::{Arrival, Gaps, Load, Rate, Seconds, Stages};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1, Gamma};

/// When a client of a staggered closed loop begins, in nanoseconds: the first at once, the others evenly over `spread`.
/// `client` counts from 0 and is below `clients`.
pub fn client_start(spread: u64, client: u64, clients: u64) -> u64 {
    (u128::from(spread) * u128::from(client) / u128::from(clients.max(1))) as u64
}

/// The time at which a request is to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Due {
    pub(crate) arrival: Arrival,
    /// The load was still changing.
    pub(crate) ramp: bool,
}

/// The send times of a plan, in order.
#[derive(Debug, Clone)]
pub(crate) enum Schedule {
    /// Clients take requests when they are free, save for the first of each where their starts are spread.
    Closed { next: u64, concurrency: u64, stagger_ns: Option<u64> },
    /// Times drawn beforehand.
    Open(Box<Process>),
    /// Times of the data set.
    Trace { speed: f64 },
}

impl Schedule {
    /// `ramp_s` is the resolved length of the ramp; stages stand in place of the rate of an open loop.
    pub(crate) fn new(load: &Load, stages: Option<&Stages>, ramp_s: Option<f64>, seeds: SeedTree) -> Self {
        match *load {
            Load::Closed { concurrency, stagger } => Self::Closed {
                next: 0,
                concurrency: concurrency.into(),
                stagger_ns: stagger.map(Seconds::nanos),
            },
            Load::Open { rate, gaps, .. } => {
                let process = Process::new(rate, ramp_s, gaps, seeds.generator(Purpose::Arrivals));
                let stages = stages.map(Stages::pieces);
                Self::Open(Box::new(Process { stages, ..process }))
            }
            Load::Trace { speed, .. } => Self::Trace { speed },
        }
    }

    /// One request after another.
    pub(crate) fn one_by_one() -> Self {
        Self::Closed { next: 0, concurrency: 1, stagger_ns: None }
    }

    /// The next send time. `trace_time` yields that of the data set's next entry, in nanoseconds since its first.
    pub(crate) fn next(&mut self, trace_time: impl FnOnce() -> Option<u64>) -> Option<Due> {
        match self {
            Self::Closed { next, concurrency, stagger_ns } => {
                let client = *next;
                *next += 1;
                Some(match *stagger_ns {
                    Some(spread) if client < *concurrency => {
                        Due { arrival: Arrival::At(client_start(spread, client, *concurrency)), ramp: true }
                    }
                    _ => Due { arrival: Arrival::WhenFree, ramp: false },
                })
            }
            Self::Open(process) => process.next(),
            Self::Trace { speed } => {
                let at = (trace_time()? as f64 / *speed).round() as u64;
                Some(Due { arrival: Arrival::At(at), ramp: false })
            }
        }
    }
}

/// A renewal process in operational time, carried to clock time by inverting the cumulative rate.
///
/// Unit-mean gaps are summed to S₁, S₂, …; arrival i is at Λ⁻¹(Sᵢ) with Λ(t) = ∫₀ᵗ rate. Exponential gaps give
/// an exact (inhomogeneous) Poisson process (Çinlar 1975; Lewis and Shedler 1979), equal gaps a deterministic
/// one, and at a constant rate gamma gaps are those of vLLM's tool. Times are absolute: no error adds up, and
/// nothing is rescaled to end at a chosen moment.
#[derive(Debug, Clone)]
pub(crate) struct Process {
    rng: ChaCha8Rng,
    gap: Gap,
    /// Sᵢ.
    sum: f64,
    first: f64,
    last: f64,
    /// Seconds.
    ramp_s: f64,
    /// Start, length and rate of each stage, where there are some.
    stages: Option<Vec<(f64, f64, f64)>>,
}

#[derive(Debug, Clone)]
enum Gap {
    Exponential,
    Gamma(Gamma<f64>),
    Equal,
}

impl Gap {
    fn draw(&self, rng: &mut ChaCha8Rng) -> f64 {
        match self {
            Self::Exponential => Exp1.sample(rng),
            Self::Gamma(gamma) => gamma.sample(rng),
            Self::Equal => 1.0,
        }
    }
}

impl Process {
    fn new(rate: Rate, ramp_s: Option<f64>, gaps: Gaps, rng: ChaCha8Rng) -> Self {
        let gap = match gaps {
            Gaps::Constant => Gap::Equal,
            // The plan was checked, so the shape is positive; were it not, exponential gaps are the neutral choice.
            Gaps::Gamma { burstiness } if burstiness != 1.0 => {
                Gamma::new(burstiness, 1.0 / burstiness).map_or(Gap::Exponential, Gap::Gamma)
            }
            Gaps::Poisson | Gaps::Gamma { .. } => Gap::Exponential,
        };
        let last = rate.ramp.map_or(rate.per_s, |ramp| ramp.to_per_s);
        Self { rng, gap, sum: 0.0, first: rate.per_s, last, ramp_s: ramp_s.unwrap_or(0.0), stages: None }
    }

    fn next(&mut self) -> Option<Due> {
        self.sum += self.gap.draw(&mut self.rng);
        let seconds = self.at(self.sum)?;
        Some(Due { arrival: Arrival::At((seconds * 1e9).round() as u64), ramp: seconds < self.ramp_s })
    }

    /// Λ⁻¹: when the expected number of arrivals reaches `sum`; never, if the rate ends at 0.
    fn at(&self, sum: f64) -> Option<f64> {
        if let Some(stages) = &self.stages {
            let mut left = sum;
            for (start, length, rate) in stages {
                if left < rate * length {
                    return Some(start + left / rate);
                }
                left -= rate * length;
            }
            return None;
        }
        let in_ramp = f64::midpoint(self.first, self.last) * self.ramp_s;
        if sum < in_ramp {
            // Λ(t) = first·t + slope·t²/2, solved without cancellation; the root exists since sum < Λ(ramp).
            let slope = (self.last - self.first) / self.ramp_s;
            let root = (self.first * self.first + 2.0 * slope * sum).max(0.0).sqrt();
            return Some(2.0 * sum / (self.first + root));
        }
        (self.last > 0.0).then(|| self.ramp_s + (sum - in_ramp) / self.last)
    }
}
