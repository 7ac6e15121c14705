//! What others took from the decoding of each request.

use crate::client::ClientPart;
use crate::findings::{Basis, DecodeTime};
use crate::schedule::{Absence, Schedule};
use crate::stats::order::{mean, median};
use crate::wall_clock::Ledger;
use precipice_record::Run;
use std::collections::{BTreeMap, BTreeSet};

/// Nanoseconds of one request.
#[derive(Default)]
struct Taken {
    decoding: f64,
    prefill: f64,
    recompute: f64,
    preempted: f64,
}

/// By the steps where their times and the preempted requests are known, else against the median gap.
pub(crate) fn shares(run: &Run, client: &ClientPart, schedule: &Schedule, ledger: &Ledger) -> DecodeTime {
    let rows = run.requests.iter().enumerate().filter(|(_, row)| row.measured() && row.completed());
    let decoding = |row: &precipice_record::RequestRow| {
        let (first, last) = (row.first_token?.0, row.last_token?.0);
        (row.output()? > 1 && last > first).then_some((first, last))
    };
    let rows: Vec<(usize, (u64, u64))> =
        rows.filter_map(|(index, row)| Some((index, decoding(row)?))).collect();
    let times: Vec<f64> = rows.iter().map(|(_, (first, last))| (last - first) as f64).collect();
    let mut found = DecodeTime {
        requests: rows.len() as u64,
        mean_s: mean(&times).map(|ns| ns / 1e9),
        ..DecodeTime::default()
    };
    if let (Some(absences), false) = (&schedule.absences, ledger.is_empty()) {
        let own = by_row(absences);
        let taken: Vec<Taken> =
            rows.iter().map(|&(row, span)| taken(client, ledger, span, row, own.get(&row))).collect();
        of_steps(&mut found, &taken);
        found.basis = schedule.basis;
    } else if let Some(gap) = client.findings.itl_ms.p50 {
        let shares: Vec<f64> = rows
            .iter()
            .zip(&times)
            .filter_map(|(&(row, _), time)| {
                let gaps = f64::from(run.requests[row].output()? - 1);
                Some((1.0 - gaps * gap * 1e6 / time).max(0.0))
            })
            .collect();
        let kept: Vec<f64> = shares.iter().zip(&times).map(|(share, time)| time * (1.0 - share)).collect();
        found.undisturbed_s = mean(&kept).map(|ns| ns / 1e9);
        summarise(&mut found, &shares);
        found.basis = found.undisturbed_s.map(|_| Basis::MedianGap);
    }
    found
}

/// Gaps of each row in which it was away, each once: it may have been thrown out twice before it got a token.
fn by_row(absences: &[Absence]) -> BTreeMap<usize, BTreeSet<usize>> {
    let mut own: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for absence in absences {
        own.entry(absence.row).or_default().insert(absence.gap);
    }
    own
}

/// The gap in which a request was away is its own; the rest of its decoding is shared by the steps.
fn taken(
    client: &ClientPart,
    ledger: &Ledger,
    (first, last): (u64, u64),
    row: usize,
    own: Option<&BTreeSet<usize>>,
) -> Taken {
    let all = ledger.between(first, last);
    let mut taken = Taken {
        decoding: (last - first) as f64,
        prefill: all.prefill,
        recompute: all.recompute,
        ..Taken::default()
    };
    let times = client.streams.times(row);
    for &gap in own.into_iter().flatten() {
        let (from, to) = (times[gap - 1], times[gap]);
        let inside = ledger.between(from, to);
        taken.prefill -= inside.prefill;
        taken.recompute -= inside.recompute;
        taken.preempted += (to - from) as f64;
    }
    taken
}

fn of_steps(found: &mut DecodeTime, taken: &[Taken]) {
    let sum = |of: fn(&Taken) -> f64| taken.iter().map(of).sum::<f64>();
    let all = sum(|one| one.decoding);
    if all <= 0.0 {
        return;
    }
    found.prefill_share = Some(sum(|one| one.prefill) / all);
    found.recompute_share = Some(sum(|one| one.recompute) / all);
    found.preempted_share = Some(sum(|one| one.preempted) / all);
    let lost = |one: &Taken| one.prefill + one.recompute + one.preempted;
    found.undisturbed_s = found.mean_s.map(|mean| mean * (1.0 - taken.iter().map(lost).sum::<f64>() / all));
    let shares: Vec<f64> = taken.iter().map(|one| lost(one) / one.decoding).collect();
    summarise(found, &shares);
}

fn summarise(found: &mut DecodeTime, shares: &[f64]) {
    found.taken_share =
        found.mean_s.zip(found.undisturbed_s).map(|(mean, undisturbed)| 1.0 - undisturbed / mean);
    found.taken_median = median(shares);
    found.taken_max = shares.iter().copied().reduce(f64::max);
}
