//! The same thing done to many, on all cores.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

/// Threads to use when nobody says: one a core.
pub fn cores() -> usize {
    thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// `work` of each item, on `threads` threads, in the order of the items. `done` is called on this thread with each
/// result as it comes; when it returns false, items not yet begun are left out and their results are absent.
pub fn map<T: Sync, R: Send>(
    items: &[T],
    threads: usize,
    work: impl Fn(&T) -> R + Sync,
    mut done: impl FnMut(usize, &R) -> bool,
) -> Vec<Option<R>> {
    let next = AtomicUsize::new(0);
    let mut results: Vec<Option<R>> = items.iter().map(|_| None).collect();
    thread::scope(|scope| {
        // A rendezvous: no thread runs ahead of whoever may say stop.
        let (send, receive) = mpsc::sync_channel(0);
        for _ in 0..threads.clamp(1, items.len().max(1)) {
            let (send, next, work) = (send.clone(), &next, &work);
            scope.spawn(move || {
                while let Some((place, item)) = {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    items.get(place).map(|item| (place, item))
                } {
                    // Nobody listens any more only if this scope is being left.
                    if send.send((place, work(item))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(send);
        for (place, result) in receive {
            if !done(place, &result) {
                next.fetch_max(items.len(), Ordering::Relaxed);
            }
            results[place] = Some(result);
        }
    });
    results
}

#[cfg(test)]
mod tests {
    use super::map;

    #[test]
    fn results_come_in_the_order_of_the_items() {
        let items: Vec<u64> = (0..100).collect();
        let mut seen = 0;
        let squares = map(
            &items,
            4,
            |n| n * n,
            |_, _| {
                seen += 1;
                true
            },
        );
        assert_eq!(squares, items.iter().map(|n| Some(n * n)).collect::<Vec<_>>());
        assert_eq!(seen, 100);
    }

    #[test]
    fn who_says_stop_gets_no_more() {
        let items: Vec<u64> = (0..50).collect();
        let some = map(&items, 1, |n| *n, |place, _| place < 2);
        assert!(some[..3].iter().all(Option::is_some));
        assert!(some.iter().filter(|result| result.is_none()).count() > 0);
        assert_eq!(map(&[] as &[u8], 3, |n| *n, |_, _| true), Vec::new());
    }
}
