//! Steps made by hand.

use precipice_engine::{Entry, Scheduled, StepShape};

pub(crate) fn request(tokens: u32, computed: u32) -> Scheduled {
    Scheduled {
        slot: 0,
        tokens,
        computed,
        recomputed: 0,
        entry: Entry::Running,
        context: tokens > 1,
        first: tokens > 1,
        samples: true,
    }
}

pub(crate) fn decodes(sequences: u32, context: u32) -> Vec<Scheduled> {
    vec![request(1, context - 1); sequences as usize]
}

pub(crate) fn shape(requests: &[Scheduled]) -> StepShape<'_> {
    StepShape {
        requests,
        tokens: requests.iter().map(|request| request.tokens).sum(),
        sampling: requests.iter().filter(|request| request.samples).count() as u32,
        running: requests.len() as u32,
    }
}
