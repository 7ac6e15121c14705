//! The token-carrying events of each attempt, brought together from rows that interleave.

use precipice_record::{Chunks, Ns, RequestRow};
use std::collections::BTreeMap;

/// Chunks grouped by the row of their attempt, by rising time within it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Streams {
    /// Where the events of each row of the requests begin; one more than there are rows.
    offset: Vec<usize>,
    time: Vec<u64>,
    tokens: Vec<u16>,
    /// Chunks whose attempt has no row (a run that was cut off).
    pub(crate) orphans: u64,
    /// Events that shared a socket read with another.
    pub(crate) coalesced: u64,
}

impl Streams {
    /// Groups by counting sort: two passes over the chunks, whatever their order.
    pub(crate) fn group(requests: &[RequestRow], chunks: &Chunks) -> Self {
        const NOBODY: u32 = u32::MAX;
        let rows = Rows::of(requests);
        let mut owner = vec![NOBODY; chunks.len()];
        let mut offset = vec![0_usize; requests.len() + 1];
        let mut orphans = 0;
        for (index, owner) in owner.iter_mut().enumerate() {
            let chunk = (chunks.request[index], chunks.attempt[index], chunks.time[index]);
            if let Some(row) = rows.find(requests, chunk) {
                *owner = row as u32;
                offset[row + 1] += 1;
            } else {
                orphans += 1;
            }
        }
        for row in 0..requests.len() {
            offset[row + 1] += offset[row];
        }
        let mut next = offset.clone();
        let owned = chunks.len() - orphans;
        let (mut time, mut tokens) = (vec![0; owned], vec![0; owned]);
        for (index, &row) in owner.iter().enumerate().filter(|&(_, &row)| row != NOBODY) {
            let place = &mut next[row as usize];
            time[*place] = chunks.time[index].0;
            tokens[*place] = chunks.tokens[index];
            *place += 1;
        }
        let coalesced = chunks.events_in_read.iter().filter(|&&events| events > 1).count() as u64;
        let mut streams = Self { offset, time, tokens, orphans: orphans as u64, coalesced };
        streams.order();
        streams
    }

    /// Sorts the attempts whose events did not come in order of time (an import may do so).
    fn order(&mut self) {
        for row in 0..self.offset.len().saturating_sub(1) {
            let range = self.offset[row]..self.offset[row + 1];
            if !self.time[range.clone()].is_sorted() {
                let mut pairs: Vec<(u64, u16)> =
                    range.clone().map(|index| (self.time[index], self.tokens[index])).collect();
                pairs.sort_by_key(|&(time, _)| time);
                for (index, (time, tokens)) in range.zip(pairs) {
                    self.time[index] = time;
                    self.tokens[index] = tokens;
                }
            }
        }
    }

    /// Rows of the requests, those without events included.
    pub(crate) fn rows(&self) -> usize {
        self.offset.len().saturating_sub(1)
    }

    /// Times of the events of a row, rising.
    pub(crate) fn times(&self, row: usize) -> &[u64] {
        &self.time[self.offset[row]..self.offset[row + 1]]
    }

    /// Tokens of the same events; 0 where the number is unknown.
    pub(crate) fn tokens(&self, row: usize) -> &[u16] {
        &self.tokens[self.offset[row]..self.offset[row + 1]]
    }

    /// Gaps between consecutive events of a row, in nanoseconds.
    pub(crate) fn gaps(&self, row: usize) -> impl Iterator<Item = u64> + '_ {
        self.times(row).windows(2).map(|pair| pair[1] - pair[0])
    }

    /// All events.
    pub(crate) fn len(&self) -> usize {
        self.time.len()
    }

    /// Events with their times and tokens, in no particular order.
    pub(crate) fn events(&self) -> impl Iterator<Item = (Ns, u16)> + '_ {
        self.time.iter().zip(&self.tokens).map(|(&time, &tokens)| (Ns(time), tokens))
    }
}

/// Finds the row of an attempt.
///
/// Request and attempt name it, but warm-up requests are counted apart and may use the same numbers: then the
/// time decides.
struct Rows {
    /// Row of the request with this number and attempt 0, where only one row has that name.
    direct: Vec<u32>,
    /// All others.
    named: BTreeMap<(u32, u16), Vec<u32>>,
}

impl Rows {
    const NONE: u32 = u32::MAX;

    fn of(requests: &[RequestRow]) -> Self {
        // Numbers beyond this would make the direct table larger than the rows deserve.
        let dense = requests.len().saturating_mul(4);
        let mut direct = vec![Self::NONE; dense];
        let mut named: BTreeMap<(u32, u16), Vec<u32>> = BTreeMap::new();
        for (index, row) in requests.iter().enumerate() {
            match direct.get_mut(row.request as usize) {
                Some(place) if row.attempt == 0 && *place == Self::NONE => *place = index as u32,
                _ => named.entry((row.request, row.attempt)).or_default().push(index as u32),
            }
        }
        Self { direct, named }
    }

    fn find(&self, requests: &[RequestRow], (request, attempt, time): (u32, u16, Ns)) -> Option<usize> {
        let within = |row: usize| {
            let row = &requests[row];
            row.sent.unwrap_or(row.intended) <= time && time <= row.end
        };
        let direct =
            self.direct.get(request as usize).copied().filter(|&row| attempt == 0 && row != Self::NONE);
        if let Some(row) = direct.filter(|&row| self.named.is_empty() || within(row as usize)) {
            return Some(row as usize);
        }
        let others = self.named.get(&(request, attempt)).map(Vec::as_slice).unwrap_or_default();
        let mut all = direct.iter().chain(others).map(|&row| row as usize);
        all.clone().find(|&row| within(row)).or_else(|| all.next())
    }
}

#[cfg(test)]
mod tests {
    use super::Streams;
    use precipice_record::{ChunkRow, Chunks, Ns, Phase, RequestRow};
    use proptest::prelude::*;

    fn row(request: u32, attempt: u16, sent: u64, end: u64) -> RequestRow {
        RequestRow { request, attempt, sent: Some(Ns(sent)), end: Ns(end), ..RequestRow::default() }
    }

    fn chunk(request: u32, attempt: u16, time: u64) -> ChunkRow {
        ChunkRow { request, attempt, time: Ns(time), tokens: 1, events_in_read: 1 }
    }

    fn chunks(rows: &[ChunkRow]) -> Chunks {
        let mut chunks = Chunks::default();
        for &row in rows {
            chunks.push(row);
        }
        chunks
    }

    #[test]
    fn attempts_and_warm_ups_of_one_number_are_told_apart() {
        let mut warm = row(0, 0, 0, 10);
        warm.phase = Phase::Warmup;
        let rows = [warm, row(0, 0, 20, 40), row(0, 1, 50, 60), row(9, 0, 0, 100)];
        let all = chunks(&[chunk(9, 0, 5), chunk(0, 0, 30), chunk(0, 1, 55), chunk(0, 0, 8), chunk(7, 0, 1)]);
        let streams = Streams::group(&rows, &all);
        assert_eq!(streams.times(0), [8]);
        assert_eq!(streams.times(1), [30]);
        assert_eq!(streams.times(2), [55]);
        assert_eq!(streams.times(3), [5]);
        assert_eq!(streams.orphans, 1);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_each_attempt_is_in_order(
            events in prop::collection::vec((0_u32..6, 0_u64..1000), 0..200)
        ) {
            let rows: Vec<_> = (0..6).map(|request| row(request, 0, 0, 1000)).collect();
            let all: Vec<_> = events.iter().map(|&(request, time)| chunk(request, 0, time)).collect();
            let streams = Streams::group(&rows, &chunks(&all));
            for request in 0..6 {
                let mut expected: Vec<u64> =
                    events.iter().filter(|event| event.0 == request).map(|event| event.1).collect();
                expected.sort_unstable();
                prop_assert_eq!(streams.times(request as usize), expected);
            }
        }
    }
}
