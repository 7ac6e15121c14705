//! Why the longest gaps between tokens were long.
//!
//! In this order, the first that holds: the request itself was preempted; the client stalled; others' prefill or
//! recomputation was in the steps of the gap. What nothing explains is `unknown`.

use crate::client::ClientPart;
use crate::findings::{Cause, Gap, PreemptionEvent};
use crate::schedule::Schedule;
use crate::server::ServerPart;
use crate::wall_clock::Ledger;
use crate::window::Window;
use precipice_record::Run;
use std::collections::{BTreeMap, BTreeSet};

/// A gap shorter than so many usual ones is not that of a request that was thrown out.
const LONG: f64 = 2.0;

/// Everything that a cause is read from.
pub(crate) struct Evidence<'a> {
    pub(crate) run: &'a Run,
    pub(crate) window: Window,
    pub(crate) client: &'a ClientPart,
    pub(crate) server: &'a ServerPart,
    pub(crate) schedule: &'a Schedule,
    pub(crate) ledger: &'a Ledger,
    /// Row of each request and attempt.
    pub(crate) rows: BTreeMap<(u32, u16), usize>,
}

/// The gaps with the cause of each. They come longest first.
pub(crate) fn explain(gaps: &[Gap], evidence: &Evidence<'_>) -> Vec<Gap> {
    let own = evidence.own(gaps);
    let mut returns: Vec<(f64, u32)> =
        gaps.iter().zip(&own).filter(|(_, own)| **own).map(|(gap, _)| (gap.to_s, gap.request)).collect();
    returns.sort_by(|a, b| a.0.total_cmp(&b.0));
    let firsts = evidence.first_tokens();
    let cause = |(gap, own): (&Gap, bool)| {
        let cause = if own {
            Cause::OwnPreemption
        } else if evidence.stalled(gap) {
            Cause::ClientStall
        } else if evidence.ledger.is_empty() {
            evidence.by_first_tokens(gap, &firsts, &returns)
        } else {
            evidence.by_steps(gap)
        };
        Gap { cause: Some(cause), ..gap.clone() }
    };
    gaps.iter().zip(own).map(cause).collect()
}

impl Evidence<'_> {
    fn time(&self, seconds: f64) -> u64 {
        (self.window.from.0 as f64 + seconds * 1e9).max(0.0).round() as u64
    }

    fn usual_s(&self) -> f64 {
        self.client.findings.itl_ms.p50.unwrap_or(0.0) / 1e3
    }

    /// Which gaps are those of a preempted request: a resumption of its request falls into it, or the counter grew
    /// where it began or ended.
    fn own(&self, gaps: &[Gap]) -> Vec<bool> {
        let Some(absences) = &self.schedule.absences else { return self.own_by_counter(gaps) };
        let away: BTreeSet<(usize, usize)> =
            absences.iter().map(|absence| (absence.row, absence.gap)).collect();
        let is_away = |gap: &Gap| {
            let row = self.rows.get(&(gap.request, gap.attempt));
            row.is_some_and(|&row| away.contains(&(row, gap.index as usize)))
        };
        gaps.iter().map(is_away).collect()
    }

    /// vLLM counts a preemption with the victim's next output: the one in flight at that moment if it schedules ahead,
    /// else the one after its return. So the counter grows where the gap begins, or where it ends. Each preemption
    /// explains one gap, the longest first.
    fn own_by_counter(&self, gaps: &[Gap]) -> Vec<bool> {
        let events = &self.server.findings.preemptions.events;
        let reach = 1.5 * self.server.grid.interval.secs();
        let at_end = self.run.manifest.server.async_scheduling == Some(false);
        let mut left: Vec<(&PreemptionEvent, u32)> = events.iter().map(|event| (event, event.n)).collect();
        let take = |gap: &Gap| {
            if gap.ms < LONG * self.usual_s() * 1e3 {
                return false;
            }
            // An event was seen at the scrape after it.
            let moment = if at_end { gap.to_s } else { gap.from_s };
            let near = left
                .iter_mut()
                .filter(|(event, n)| *n > 0 && (-reach..=reach).contains(&(event.t_s - moment)))
                .min_by(|a, b| (a.0.t_s - moment).abs().total_cmp(&(b.0.t_s - moment).abs()));
            if let Some((_, n)) = near {
                *n -= 1;
                return true;
            }
            false
        };
        gaps.iter().map(take).collect()
    }

    /// The client's own thread was away for most of what the gap is longer than usual.
    fn stalled(&self, gap: &Gap) -> bool {
        let Some(audit) = &self.run.manifest.audit else { return false };
        let away = |stall: &precipice_record::Stall| {
            let from = self.window.at(stall.at);
            (gap.to_s.min(from + stall.lasted.secs()) - gap.from_s.max(from)).max(0.0)
        };
        let away: f64 = audit.stalls.iter().map(away).sum();
        away > 0.0 && away >= 0.5 * (gap.ms / 1e3 - self.usual_s())
    }

    /// What the steps of the gap took beyond decoding; it must be most of what the gap is longer than usual.
    fn by_steps(&self, gap: &Gap) -> Cause {
        let parts = self.ledger.between(self.time(gap.from_s), self.time(gap.to_s) + 1_000);
        let more = (gap.ms / 1e3 - self.usual_s()) * 1e9;
        if parts.prefill + parts.recompute < 0.5 * more {
            Cause::Unknown
        } else if parts.recompute > parts.prefill {
            Cause::OthersRecompute
        } else {
            Cause::OthersPrefill
        }
    }

    /// First tokens by moment, with their requests.
    fn first_tokens(&self) -> Vec<(f64, u32)> {
        let rows = self.run.requests.iter().filter(|row| row.measured());
        let mut firsts: Vec<(f64, u32)> =
            rows.filter_map(|row| Some((self.window.at(row.first_token?), row.request))).collect();
        firsts.sort_by(|a, b| a.0.total_cmp(&b.0));
        firsts
    }

    /// Without steps: the step that ends a gap put out the first token of another request, so its prefill was in it; or
    /// the next token of one that came back. A prompt of several budgets takes as many long steps in a row, of which only
    /// the last one shows.
    fn by_first_tokens(&self, gap: &Gap, firsts: &[(f64, u32)], returns: &[(f64, u32)]) -> Cause {
        let Some(&row) = self.rows.get(&(gap.request, gap.attempt)) else { return Cause::Unknown };
        let times = self.client.streams.times(row);
        let half = (self.usual_s() * 0.5e9) as u64;
        for after in gap.index as usize..times.len().min(gap.index as usize + self.chunks()) {
            let (from, to) = (times[after - 1], times[after]);
            if ((to - from) as f64) < LONG * self.usual_s() * 1e9 {
                break;
            }
            let ends = |moments: &[(f64, u32)]| {
                let begin = moments.partition_point(|&(at, _)| self.time(at) <= from + half);
                let near = moments[begin..].iter().take_while(|&&(at, _)| self.time(at) <= to + half);
                near.into_iter().any(|&(_, request)| request != gap.request)
            };
            if ends(firsts) {
                return Cause::OthersPrefill;
            }
            if ends(returns) {
                return Cause::OthersRecompute;
            }
        }
        Cause::Unknown
    }

    /// Steps that the longest prompt takes.
    fn chunks(&self) -> usize {
        let prompts = self.run.requests.iter().filter_map(precipice_record::RequestRow::prompt);
        let prompt = prompts.max().unwrap_or(1);
        let budget = self.run.manifest.server.max_num_batched_tokens.unwrap_or(prompt);
        prompt.div_ceil(budget.max(1)) as usize
    }
}

/// How many of the listed gaps have each cause.
pub(crate) fn count(gaps: &[Gap]) -> BTreeMap<Cause, u64> {
    let mut causes = BTreeMap::new();
    for cause in gaps.iter().filter_map(|gap| gap.cause) {
        *causes.entry(cause).or_insert(0) += 1;
    }
    causes
}
