//! The longest gaps between tokens, each with its request and its moment.

use super::streams::Streams;
use crate::findings::Gap;
use crate::window::Window;
use precipice_record::{Ns, RequestRow};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A gap by its length, then by row and place: the earlier of two equal ones ranks higher.
type Ranked = (u64, Reverse<(usize, usize)>);

/// The `most` longest gaps of the rows, longest first; of equal ones the earliest row first.
pub(crate) fn longest(
    requests: &[RequestRow],
    rows: &[usize],
    streams: &Streams,
    window: Window,
    most: usize,
) -> Vec<Gap> {
    // The smallest of the kept is on top.
    let mut kept: BinaryHeap<Reverse<Ranked>> = BinaryHeap::with_capacity(most + 1);
    for &row in rows {
        for (index, gap) in streams.gaps(row).enumerate() {
            if kept.len() < most || kept.peek().is_some_and(|Reverse((least, _))| gap > *least) {
                kept.push(Reverse((gap, Reverse((row, index)))));
                if kept.len() > most {
                    kept.pop();
                }
            }
        }
    }
    let mut found: Vec<Ranked> = kept.into_iter().map(|Reverse(gap)| gap).collect();
    found.sort_unstable_by(|a, b| b.cmp(a));
    found
        .into_iter()
        .map(|(gap, Reverse((row, index)))| {
            let times = streams.times(row);
            Gap {
                ms: Ns(gap).millis(),
                request: requests[row].request,
                attempt: requests[row].attempt,
                index: index as u32 + 1,
                from_s: window.at(Ns(times[index])),
                to_s: window.at(Ns(times[index + 1])),
                cause: None,
            }
        })
        .collect()
}
