//! Beginnings of prompts that several requests share.
//!
//! A prompt is cut into pieces; the hash of a piece covers everything before it, so two prompts share exactly the
//! pieces whose hashes are equal, and these are the first ones.

use std::collections::{HashMap, HashSet};

/// How many requests hold each piece.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pieces {
    holders: HashMap<u64, u32>,
    /// Pieces with several holders.
    shared: usize,
}

impl Pieces {
    pub(crate) fn hold(&mut self, chain: &[u64]) {
        for piece in chain {
            let holders = self.holders.entry(*piece).or_insert(0);
            *holders += 1;
            self.shared += usize::from(*holders == 2);
        }
    }

    pub(crate) fn release(&mut self, chain: &[u64]) {
        for piece in chain {
            if let Some(holders) = self.holders.get_mut(piece) {
                self.shared -= usize::from(*holders == 2);
                *holders -= 1;
                if *holders == 0 {
                    self.holders.remove(piece);
                }
            }
        }
    }

    /// Pieces at the beginning of `chain` that somebody holds.
    pub(crate) fn found(&self, chain: &[u64]) -> usize {
        chain.partition_point(|piece| self.holders.contains_key(piece))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.holders.is_empty()
    }

    /// Nobody shares anything.
    pub(crate) fn all_alone(&self) -> bool {
        self.shared == 0
    }
}

/// Who pays for a shared piece: the request that holds it longest. Ask in the order of their ends, the last one first.
#[derive(Debug, Default)]
pub(crate) struct Payers {
    paid: HashSet<u64>,
}

impl Payers {
    /// Pieces at the beginning of `chain` that a request with a later end pays for.
    pub(crate) fn take(&mut self, chain: &[u64]) -> usize {
        let paid = chain.partition_point(|piece| self.paid.contains(piece));
        self.paid.extend(&chain[paid..]);
        paid
    }
}

#[cfg(test)]
mod tests {
    use super::{Payers, Pieces};

    #[test]
    fn pieces_are_counted_until_the_last_holder_leaves() {
        let mut pieces = Pieces::default();
        pieces.hold(&[1, 2, 3]);
        assert!(pieces.all_alone());
        pieces.hold(&[1, 2, 9]);
        assert!(!pieces.all_alone());
        assert_eq!(pieces.found(&[1, 2, 7]), 2);
        pieces.release(&[1, 2, 3]);
        assert!(pieces.all_alone());
        assert_eq!(pieces.found(&[1, 2, 3]), 2);
        pieces.release(&[1, 2, 9]);
        assert!(pieces.is_empty());
    }

    #[test]
    fn the_one_that_stays_longest_pays() {
        let mut payers = Payers::default();
        assert_eq!(payers.take(&[1, 2, 3]), 0);
        assert_eq!(payers.take(&[1, 2, 4]), 2);
        assert_eq!(payers.take(&[1, 2, 4, 5]), 3);
    }
}
