//! Further attempts that wait for their time.

use crate::clock::ns;
use crate::load::Retries;
use crate::load::feed::Job;
use precipice_record::{FailureKind, Ns, RequestRow};
use slab::Slab;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The attempts of one lane that wait, the one that is due first on top.
#[derive(Debug, Default)]
pub(crate) struct Retrying {
    /// When, and where the job is.
    waiting: BinaryHeap<Reverse<(Ns, usize)>>,
    jobs: Slab<Job>,
}

impl Retrying {
    /// Plans another attempt after one that ended as `row`, if there is to be one. Returns when it is due.
    pub(crate) fn plan(&mut self, rules: &Retries, job: &mut Job, row: &RequestRow, now: Ns) -> Option<Ns> {
        if !row.failure.is_some_and(worth_another) || job.attempt >= rules.most {
            return None;
        }
        let backoff = ns(rules.backoff).0.saturating_mul(1 << job.attempt.min(20));
        let due = now + row.retry_after_s.map_or(Ns(backoff), Ns::from_secs);
        let mut job = Job { bytes: std::mem::take(&mut job.bytes), ..job.clone() };
        job.attempt += 1;
        self.waiting.push(Reverse((due, self.jobs.insert(job))));
        Some(due)
    }

    /// An attempt that is due, and since when.
    pub(crate) fn take(&mut self, now: Ns) -> Option<(Job, Ns)> {
        let &Reverse((due, key)) = self.waiting.peek().filter(|Reverse((due, _))| *due <= now)?;
        self.waiting.pop();
        Some((self.jobs.remove(key), due))
    }

    /// When the next one is due; the end of time if none waits.
    pub(crate) fn next_due(&self) -> Ns {
        self.waiting.peek().map_or(Ns(u64::MAX), |Reverse((due, _))| *due)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
        self.jobs.clear();
    }
}

/// Whether the same request can end better another time.
fn worth_another(failure: FailureKind) -> bool {
    !matches!(failure, FailureKind::ClientError | FailureKind::Cancelled | FailureKind::Local)
}
