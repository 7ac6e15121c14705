//! The share of the pool that is left alone: widened fast when the server shows that the forecast was wrong, narrowed
//! slowly while it is calm.

use crate::settings::Observation;
use precipice_record::Ns;

/// One hundredth of the pool: what a new guard leaves alone, and by what calm narrows it.
const LEAST: f64 = 0.01;
/// More than this is never left alone: the server would starve.
const MOST: f64 = 0.5;
/// Each sign of trouble widens it so many times.
const WIDER: f64 = 2.0;
/// So long without trouble is calm.
const CALM: Ns = Ns(60_000_000_000);

/// The margin of one server.
#[derive(Debug, Clone)]
pub(crate) struct Margin {
    share: f64,
    preemptions: Option<f64>,
    preempted: f64,
    /// Since when the server has had a queue.
    waiting_since: Option<Ns>,
    /// Last trouble or last narrowing.
    quiet_since: Ns,
}

impl Default for Margin {
    fn default() -> Self {
        Self { share: LEAST, preemptions: None, preempted: 0.0, waiting_since: None, quiet_since: Ns::ZERO }
    }
}

impl Margin {
    /// Share of the pool, 0..1.
    pub(crate) fn share(&self) -> f64 {
        self.share
    }

    /// Preemptions that were seen.
    pub(crate) fn preempted(&self) -> f64 {
        self.preempted
    }

    /// Takes in what the server says; a queue is trouble when it stands for longer than `patience`, which the prompts
    /// that were sent explain.
    pub(crate) fn observe(&mut self, now: Ns, seen: &Observation, patience: Ns) {
        let before = self.preemptions;
        self.preemptions = seen.preemptions.or(before);
        // A counter that fell back is a server that started anew.
        let more = match (before, seen.preemptions) {
            (Some(before), Some(after)) if after > before => after - before,
            _ => 0.0,
        };
        self.preempted += more;
        self.waiting_since = match seen.waiting {
            Some(waiting) if waiting > 0.0 => self.waiting_since.or(Some(now)),
            _ => None,
        };
        let stands = self.waiting_since.is_some_and(|since| now.since(since) > patience);
        if more > 0.0 || stands {
            self.share = (self.share.max(LEAST) * WIDER).min(MOST);
            self.quiet_since = now;
            self.waiting_since = self.waiting_since.map(|_| now);
        } else if now.since(self.quiet_since) >= CALM {
            self.share = (self.share - LEAST).max(LEAST);
            self.quiet_since = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CALM, LEAST, MOST, Margin, Ns, Observation};

    const fn preemptions(count: f64) -> Observation {
        Observation { preemptions: Some(count), waiting: None, kv_usage: None }
    }

    #[test]
    fn preemptions_widen_and_calm_narrows() {
        let mut margin = Margin::default();
        margin.observe(Ns(1), &preemptions(7.0), Ns(1));
        assert_eq!(margin.share(), LEAST, "the first look knows no difference");
        margin.observe(Ns(2), &preemptions(8.0), Ns(1));
        margin.observe(Ns(3), &preemptions(9.0), Ns(1));
        assert_eq!(margin.share(), 4.0 * LEAST);
        margin.observe(Ns(4), &preemptions(0.0), Ns(1));
        assert_eq!(margin.share(), 4.0 * LEAST, "a restart is no preemption");
        margin.observe(Ns(4) + CALM, &preemptions(0.0), Ns(1));
        assert!((margin.share() - 3.0 * LEAST).abs() < 1e-12);
        for count in 1..50 {
            margin.observe(CALM, &preemptions(f64::from(count)), Ns(1));
        }
        assert_eq!(margin.share(), MOST);
        assert_eq!(margin.preempted(), 51.0);
    }

    #[test]
    fn a_queue_is_trouble_when_it_stands() {
        let waiting = |count| Observation { waiting: Some(count), ..Observation::default() };
        let mut margin = Margin::default();
        for (at, count) in [(0, 1.0), (5, 0.0), (10, 1.0), (14, 2.0)] {
            margin.observe(Ns(at), &waiting(count), Ns(5));
        }
        assert_eq!(margin.share(), LEAST);
        margin.observe(Ns(16), &waiting(1.0), Ns(5));
        assert_eq!(margin.share(), 2.0 * LEAST);
        margin.observe(Ns(17), &waiting(1.0), Ns(5));
        assert_eq!(margin.share(), 2.0 * LEAST, "patience begins anew");
    }
}
