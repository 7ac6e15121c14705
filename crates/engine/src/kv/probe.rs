//! What the prefix cache holds for the request at the head of the queue.
//!
//! A blocked head is tried in every step, and walking some hundred blocks each time would cost more than the rest
//! of the decision. So the last walk is kept, and corrected when a block that it found changes.

use super::BlockHash;

/// Not among the blocks found.
const NONE: u32 = u32::MAX;

/// The result of a walk, kept true.
#[derive(Debug, Clone)]
pub(super) struct Probe {
    /// Whose walk it was (slot and serial), and how many blocks it could go at most.
    walk: Option<(u32, u32, usize)>,
    found: Vec<u32>,
    /// Of the blocks found, those that no request holds.
    idle: u32,
    /// The content at which the walk stopped; none when it went all the way.
    missing: Option<BlockHash>,
    /// Place of each block among those found.
    place: Vec<u32>,
}

impl Probe {
    pub(super) fn new(blocks: u32) -> Self {
        Self { walk: None, found: Vec::new(), idle: 0, missing: None, place: vec![NONE; blocks as usize] }
    }

    pub(super) fn found(&self) -> &[u32] {
        &self.found
    }

    pub(super) fn idle(&self) -> u32 {
        self.idle
    }

    /// The result of this very walk is here.
    pub(super) fn knows(&self, slot: u32, serial: u32, limit: usize) -> bool {
        self.walk == Some((slot, serial, limit))
    }

    pub(super) fn begin(&mut self, slot: u32, serial: u32, limit: usize) {
        self.forget();
        self.walk = Some((slot, serial, limit));
    }

    pub(super) fn push(&mut self, block: u32, owners: u32) {
        self.place[block as usize] = self.found.len() as u32;
        self.found.push(block);
        self.idle += u32::from(owners == 0);
    }

    pub(super) fn stopped(&mut self, at: BlockHash) {
        self.missing = Some(at);
    }

    pub(super) fn forget(&mut self) {
        for block in self.found.drain(..) {
            self.place[block as usize] = NONE;
        }
        self.idle = 0;
        self.missing = None;
        self.walk = None;
    }

    /// A block with this content was entered in the cache.
    pub(super) fn entered(&mut self, hash: BlockHash) {
        if self.missing == Some(hash) {
            self.forget();
        }
    }

    /// An idle block is about to lose its content; `others` hold the same.
    pub(super) fn lost(&mut self, block: u32, hash: BlockHash, others: bool, owners: &[u32]) {
        let place = self.place[block as usize];
        if place == NONE {
            return;
        }
        if others {
            self.forget();
            return;
        }
        for gone in self.found.drain(place as usize..) {
            self.place[gone as usize] = NONE;
            self.idle -= u32::from(owners[gone as usize] == 0);
        }
        self.missing = Some(hash);
    }

    /// The last request that held a block let it go.
    pub(super) fn idled(&mut self, block: u32) {
        self.idle += u32::from(self.place[block as usize] != NONE);
    }
}
