//! The latencies of one request, as `docs/method.md` defines them, in nanoseconds.

use super::sample::{QUANTILES, Sample};
use super::streams::Streams;
use crate::Options;
use crate::findings::{Distribution, Interval, Intervals};
use crate::stats::cluster::{Clustered, Ends};
use precipice_record::{LoadKind, Ns, RequestRow};

/// The moment from which latencies count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// When the schedule wanted it sent: a generator or a cap that lags does not flatter the server.
    Intended,
    /// When it was sent.
    Sent,
}

impl Origin {
    /// Of a load: a closed loop has no schedule.
    pub fn of(load: LoadKind) -> Self {
        if load == LoadKind::Closed { Self::Sent } else { Self::Intended }
    }

    fn moment(self, row: &RequestRow) -> Option<Ns> {
        match self {
            Self::Intended => Some(row.intended),
            Self::Sent => row.sent,
        }
    }

    /// To the first event that carried a token.
    pub(crate) fn ttft(self, row: &RequestRow) -> Option<u64> {
        Some(row.first_token?.since(self.moment(row)?).0)
    }

    /// To the last event that carried a token.
    pub(crate) fn e2el(self, row: &RequestRow) -> Option<u64> {
        Some(row.last_token?.since(self.moment(row)?).0)
    }
}

/// Mean time per output token after the first; undefined for a single token.
pub(crate) fn tpot(row: &RequestRow) -> Option<u64> {
    let gaps = u64::from(row.output()?).checked_sub(1).filter(|&gaps| gaps > 0)?;
    let decoded = row.last_token?.since(row.first_token?).0;
    Some((decoded + gaps / 2) / gaps)
}

/// Sent after it was intended, less the time in which its connection opened: that is the network's and the server's.
pub(crate) fn late(row: &RequestRow) -> Option<u64> {
    Some(row.sent?.since(row.intended).since(row.connect.unwrap_or_default()).0)
}

/// All gaps between consecutive events of the rows.
pub(crate) fn gaps(streams: &Streams, rows: &[usize]) -> Sample {
    let mut values =
        Vec::with_capacity(rows.iter().map(|&row| streams.times(row).len().saturating_sub(1)).sum());
    values.extend(rows.iter().flat_map(|&row| streams.gaps(row)));
    Sample::new(values)
}

/// Each gap divided evenly over the tokens that ended it. Absent where every event carried one token, or where
/// the number is unknown for one of them.
pub(crate) fn gaps_per_token(streams: &Streams, rows: &[usize]) -> Option<Distribution> {
    let tokens = || rows.iter().flat_map(|&row| streams.tokens(row));
    if tokens().all(|&tokens| tokens == 1) || tokens().any(|&tokens| tokens == 0) {
        return None;
    }
    let values = rows
        .iter()
        // A completed request may have no event at all.
        .flat_map(|&row| streams.gaps(row).zip(streams.tokens(row).iter().skip(1)))
        .flat_map(|(gap, &tokens)| std::iter::repeat_n(gap / u64::from(tokens), usize::from(tokens)))
        .collect();
    Some(Sample::new(values).distribution())
}

/// Intervals of the gaps' percentiles and mean, by resampling requests.
pub(crate) fn gap_intervals(streams: &Streams, rows: &[usize], options: &Options) -> Option<Intervals> {
    if options.resamples == 0 {
        return None;
    }
    let samples: Vec<(u64, u32)> = rows
        .iter()
        .enumerate()
        .flat_map(|(cluster, &row)| streams.gaps(row).map(move |gap| (gap, cluster as u32)))
        .collect();
    if samples.is_empty() {
        return None;
    }
    let clustered = Clustered::new(samples);
    let quantiles = clustered.quantile_intervals(&QUANTILES, options.resamples, options.seed);
    let mut intervals = quantiles.into_iter().map(in_ms);
    let mut next = || intervals.next().flatten();
    let (p50, p90, p99, p999, p9999) = (next(), next(), next(), next(), next());
    let mean = in_ms(clustered.mean_interval(options.resamples, options.seed));
    Some(Intervals { mean, p50, p90, p99, p999, p9999 })
}

fn in_ms((low, high): Ends) -> Option<Interval> {
    (low.is_some() || high.is_some())
        .then(|| Interval { low: low.map(|ns| ns / 1e6), high: high.map(|ns| ns / 1e6) })
}

/// Puts the interval of the mean beside those of the percentiles.
pub(crate) fn bound_mean(distribution: &mut Distribution, (low, high): Ends) {
    if let Some(intervals) = &mut distribution.ci95 {
        intervals.mean = low.map(|_| Interval { low, high });
    }
}
