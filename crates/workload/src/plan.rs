//! A workload, resolved: everything that will be asked, and when.

use crate::schedule::Schedule;
use crate::seed::{Part, SeedTree};
use crate::shape::{Shapes, own_stream};
use crate::{Arrival, Dataset, Load, PlannedRequest, Seconds, Spec, SpecError};
use std::sync::Arc;

/// A workload that can be run: a checked [`Spec`], a seed, a salt and, for some, a data set.
///
/// It is a pure function of the four. Requests are made when they are asked for, so that a plan of any length
/// costs no memory, and two iterators over one plan yield the same.
#[derive(Debug, Clone)]
pub struct Plan {
    spec: Spec,
    seed: u64,
    salt: Option<Arc<str>>,
    data: Option<Arc<Dataset>>,
    /// Entries of the data set in order of time, for a trace.
    by_time: Option<Arc<[u32]>>,
    limit: Option<u32>,
    ramp_s: Option<f64>,
}

impl Plan {
    /// Resolves a workload.
    ///
    /// `salt` makes the content of this run's prompts differ from that of every other run, so that none warms
    /// the prefix cache of the next; it changes neither lengths nor times. `None` repeats the prompts of every
    /// other run with this seed (`--reuse-prompts`).
    ///
    /// # Errors
    /// When the settings contradict each other or the data set lacks what they need, with the flag that mends it.
    pub fn new(
        spec: Spec,
        seed: u64,
        salt: Option<&str>,
        data: Option<Arc<Dataset>>,
    ) -> Result<Self, SpecError> {
        spec.check(data.is_some())?;
        let mut limit = spec.requests;
        let mut by_time = None;
        if let Some(data) = &data {
            check_data(&spec, data)?;
            let entries = u32::try_from(data.len())
                .map_err(|_| SpecError::new("--data", "more than 4294967295 requests"))?;
            if matches!(spec.load, Load::Trace { .. }) {
                let mut order: Vec<u32> = (0..entries).collect();
                order.sort_by_key(|entry| data.entries[*entry as usize].at);
                by_time = Some(order.into());
                limit = Some(limit.unwrap_or(entries).min(entries));
            } else if limit.is_none() && spec.duration.is_none() {
                limit = Some(entries);
            }
        }
        let ramp_s = ramp_seconds(&spec, limit);
        check_number(&spec, ramp_s)?;
        let plan = Self { spec, seed, salt: salt.map(Into::into), data, by_time, limit, ramp_s };
        if plan.requests().next().is_none() {
            return Err(SpecError::new(
                "--duration",
                "no request is planned within it; make it longer or raise --rate",
            ));
        }
        Ok(plan)
    }

    /// The same prompts and lengths under another load, with another seed; warm-ups and durations are left out.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn under(&self, load: Load, requests: u32, seed: u64) -> Result<Self, SpecError> {
        let spec = Spec {
            load,
            requests: Some(requests),
            duration: None,
            warmup: 0,
            stages: None,
            ..self.spec.clone()
        };
        Self::new(spec, seed, self.salt(), self.data.clone())
    }

    /// What was asked for.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Seed of everything random.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// What makes the prompts of this run its own; `None` when they are reused on purpose.
    pub fn salt(&self) -> Option<&str> {
        self.salt.as_deref()
    }

    /// Most requests that it can release, where that is bounded by number rather than by time.
    pub fn limit(&self) -> Option<u32> {
        self.limit
    }

    /// No request is released from this time on, in nanoseconds since the start of the load.
    pub fn duration_ns(&self) -> Option<u64> {
        self.spec.duration.map(Seconds::nanos)
    }

    /// How long the rate changes, in seconds, where it does.
    pub fn ramp_s(&self) -> Option<f64> {
        self.ramp_s
    }

    /// The measured requests. A closed loop that is bounded by its duration alone never ends: its driver does.
    pub fn requests(&self) -> Requests {
        let seeds = SeedTree::new(self.seed, Part::Measured);
        let schedule = Schedule::new(&self.spec.load, self.spec.stages.as_ref(), self.ramp_s, seeds);
        let shapes = Shapes::new(self, seeds, self.by_time.clone());
        Requests { schedule, shapes, index: 0, limit: self.limit, until: self.duration_ns() }
    }

    /// The warm-up requests, all synthetic, one after another: the lengths of the load, with prompts and random
    /// numbers of their own, so that they warm kernels and graphs but no prefix that is measured later.
    pub fn warmup(&self) -> Requests {
        let seeds = SeedTree::new(self.seed, Part::Warmup);
        Requests {
            schedule: Schedule::one_by_one(),
            shapes: Shapes::warmup(self, seeds),
            index: 0,
            limit: Some(self.spec.warmup),
            until: None,
        }
    }

    /// The stream of the tokens that only measured request `index` has.
    pub(crate) fn own_stream(&self, index: u32) -> u64 {
        own_stream(SeedTree::new(self.seed, Part::Measured).content(self.salt()), index)
    }

    /// The data set that its requests come from.
    pub fn data(&self) -> Option<&Arc<Dataset>> {
        self.data.as_ref()
    }
}

fn check_data(spec: &Spec, data: &Dataset) -> Result<(), SpecError> {
    if matches!(spec.load, Load::Trace { .. }) && !data.has_times() {
        return Err(SpecError::new(
            "--data",
            "its requests have no times to replay; give --rate or --concurrency",
        ));
    }
    if spec.output_tokens.is_none()
        && let Some(entry) = data.entries.iter().find(|entry| entry.output_tokens.is_none())
    {
        return Err(SpecError::new(
            "--output-tokens",
            format!("{} of the data set does not say how many; give them", entry.place),
        ));
    }
    Ok(())
}

/// Requests are numbered in 32 bits: an open loop that only its duration bounds must stay below, by far more than
/// chance can add.
fn check_number(spec: &Spec, ramp_s: Option<f64>) -> Result<(), SpecError> {
    let (Load::Open { rate, .. }, Some(duration), None) = (&spec.load, spec.duration, spec.requests) else {
        return Ok(());
    };
    let (seconds, ramp_s) = (duration.get(), ramp_s.unwrap_or(0.0));
    let last = rate.ramp.map_or(rate.per_s, |ramp| ramp.to_per_s);
    let in_ramp = seconds.min(ramp_s);
    let at_end_of_ramp =
        if ramp_s > 0.0 { rate.per_s + (last - rate.per_s) * in_ramp / ramp_s } else { last };
    let expected = f64::midpoint(rate.per_s, at_end_of_ramp) * in_ramp + last * (seconds - in_ramp);
    if expected > f64::from(u32::MAX / 2) {
        return Err(SpecError::new(
            "--rate",
            format!(
                "{rate} over {duration} is {expected:.0} requests, more than a run can number; lower it or give --requests"
            ),
        ));
    }
    Ok(())
}

/// Resolves a ramp that was given no length: see [`crate::arrival::Ramp::over`].
fn ramp_seconds(spec: &Spec, limit: Option<u32>) -> Option<f64> {
    let Load::Open { rate, .. } = spec.load else { return None };
    let ramp = rate.ramp?;
    let expected = |count: u32| 2.0 * f64::from(count) / (rate.per_s + ramp.to_per_s);
    ramp.over.or(spec.duration).map(Seconds::get).or(limit.map(expected))
}

/// The requests of a plan, in order.
#[derive(Debug, Clone)]
pub struct Requests {
    schedule: Schedule,
    shapes: Shapes,
    index: u32,
    limit: Option<u32>,
    until: Option<u64>,
}

impl Iterator for Requests {
    type Item = PlannedRequest;

    fn next(&mut self) -> Option<PlannedRequest> {
        if self.limit.is_some_and(|limit| self.index >= limit) || self.index == u32::MAX {
            return None;
        }
        let due = self.schedule.next(|| self.shapes.time())?;
        if let (Arrival::At(at), Some(until)) = (due.arrival, self.until)
            && at >= until
        {
            self.limit = Some(self.index);
            return None;
        }
        let shape = self.shapes.next()?;
        let index = self.index;
        self.index += 1;
        Some(PlannedRequest {
            index,
            arrival: due.arrival,
            prompt: shape.prompt,
            output_tokens: shape.output_tokens,
            priority: shape.priority,
            ramp: due.ramp,
        })
    }
}

impl std::iter::FusedIterator for Requests {}
