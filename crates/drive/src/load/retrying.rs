//! Further attempts that wait for their time.

use crate::clock::ns;
use crate::load::Retries;
use crate::load::feed::Job;
use precipice_record::{FailureKind, Ns, RequestRow};
use precipice_workload::{RetryStyle, Told};
use slab::Slab;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// However long a server says to wait (`Retry-After`), a measurement does not stand still for longer.
const LONGEST_WAIT: Ns = Ns(60_000_000_000);

/// The attempts of one lane that wait, the one that is due first on top.
#[derive(Debug, Default)]
pub(crate) struct Retrying {
    /// When, and where the job is.
    waiting: BinaryHeap<Reverse<(Ns, usize)>>,
    jobs: Slab<Job>,
}

impl Retrying {
    /// Plans another attempt after one that ended as `row`, if there is to be one. Returns when it is due.
    /// `should_retry` is what the server said about it.
    pub(crate) fn plan(
        &mut self,
        rules: &Retries,
        job: &mut Job,
        row: &RequestRow,
        should_retry: Option<bool>,
        now: Ns,
    ) -> Option<Ns> {
        let worth = row.failure.is_some_and(|failure| match rules.style {
            RetryStyle::Doubling => worth_another(failure),
            // The status decides, and openai's clients try some 4xx again.
            RetryStyle::Openai => !matches!(failure, FailureKind::Cancelled | FailureKind::Local),
        });
        if !worth || job.attempt >= rules.most {
            return None;
        }
        let due = now + wait(rules, job, row, should_retry)?;
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

/// How long its client waits before the next attempt; absent when it gives up.
fn wait(rules: &Retries, job: &Job, row: &RequestRow, should_retry: Option<bool>) -> Option<Ns> {
    if rules.style == RetryStyle::Doubling
        && let Some(seconds) = row.retry_after_s
    {
        return Some(Ns::from_secs(seconds).min(LONGEST_WAIT));
    }
    let told = Told {
        // A stream that broke after its 200 has no status that says anything.
        status: row.status.filter(|status| *status >= 400),
        after_s: row.retry_after_s,
        should_retry,
    };
    rules.style.wait_ns(job.attempt, ns(rules.backoff).0, &told, job.request, 0).map(Ns)
}

/// Whether the same request can end better another time.
fn worth_another(failure: FailureKind) -> bool {
    !matches!(failure, FailureKind::ClientError | FailureKind::Cancelled | FailureKind::Local)
}

#[cfg(test)]
mod tests {
    use super::{LONGEST_WAIT, Retrying};
    use crate::load::Retries;
    use crate::load::feed::Job;
    use precipice_record::{FailureKind, Ns, Phase, RequestRow};

    #[test]
    fn waits_double_and_a_server_may_say_otherwise_within_reason() {
        let rules = Retries { most: 5, ..Retries::default() };
        let row = |retry_after_s| RequestRow {
            failure: Some(FailureKind::TooManyRequests),
            retry_after_s,
            ..RequestRow::default()
        };
        let due = |attempt, retry_after_s| {
            let mut job = Job {
                request: 0,
                attempt,
                phase: Phase::Steady,
                due: None,
                bytes: Vec::new(),
                prompt_tokens: None,
                output_tokens: 1,
            };
            Retrying::default().plan(&rules, &mut job, &row(retry_after_s), None, Ns(7))
        };
        assert_eq!(due(0, None), Some(Ns(500_000_007)));
        assert_eq!(due(2, None), Some(Ns(2_000_000_007)));
        assert_eq!(due(0, Some(3.0)), Some(Ns(3_000_000_007)));
        assert_eq!(due(0, Some(3600.0)), Some(Ns(7 + LONGEST_WAIT.0)));
        assert_eq!(due(5, None), None);
    }
}
