//! However a stream is cut into reads, the events are the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use precipice_wire::sse::{Splitter, TooLong};

type Events = Vec<(Vec<u8>, Vec<u8>)>;

fn split<'a>(reads: impl Iterator<Item = &'a [u8]>, limit: usize) -> (Events, Option<u64>, Result<(), TooLong>) {
    let mut splitter = Splitter::with_limit(limit);
    let mut events = Vec::new();
    for read in reads {
        if let Err(error) = splitter.push(read, |event| events.push((event.event.to_vec(), event.data.to_vec()))) {
            return (events, None, Err(error));
        }
        assert!(splitter.pending() <= limit);
    }
    splitter.finish();
    (events, splitter.retry_ms(), Ok(()))
}

fuzz_target!(|input: &[u8]| {
    let Some((&size, stream)) = input.split_first() else { return };
    let whole = split(std::iter::once(stream), usize::MAX);
    assert_eq!(split(stream.chunks(1), usize::MAX), whole);
    assert_eq!(split(stream.chunks(usize::from(size).max(1)), usize::MAX), whole);
    let (few, _, _) = split(stream.chunks(7), 32);
    assert!(few.iter().zip(&whole.0).all(|(one, other)| one == other));
});
