//! From the content of a block to the blocks that hold it.

use super::BlockHash;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// No block.
const NONE: u32 = u32::MAX;

/// The keys are hashes already: hashing them again would buy nothing.
#[derive(Debug, Clone, Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

/// The blocks with the same content, oldest first.
#[derive(Debug, Clone, Copy)]
struct Family {
    first: u32,
    last: u32,
}

/// One block's place in its family.
#[derive(Debug, Clone, Copy)]
struct Member {
    hash: Option<BlockHash>,
    before: u32,
    after: u32,
}

/// The prefix cache. Blocks of equal content all stay; a look-up finds the one that was entered first among those
/// still there, as in vLLM.
#[derive(Debug, Clone)]
pub struct PrefixCache {
    families: HashMap<u64, Family, BuildHasherDefault<AsItIs>>,
    members: Vec<Member>,
}

impl PrefixCache {
    /// An empty cache over `blocks` blocks.
    pub fn new(blocks: u32) -> Self {
        let members = vec![Member { hash: None, before: NONE, after: NONE }; blocks as usize];
        Self { families: HashMap::default(), members }
    }

    /// The oldest block with this content.
    pub fn find(&self, hash: BlockHash) -> Option<u32> {
        self.families.get(&hash.get()).map(|family| family.first)
    }

    /// The content under which `block` can be found.
    pub fn hash_of(&self, block: u32) -> Option<BlockHash> {
        self.members[block as usize].hash
    }

    /// Contents that can be found.
    pub fn len(&self) -> usize {
        self.families.len()
    }

    /// Nothing can be found.
    pub fn is_empty(&self) -> bool {
        self.families.is_empty()
    }

    /// Enters `block`, which is not in the cache.
    pub fn insert(&mut self, block: u32, hash: BlockHash) {
        debug_assert!(self.hash_of(block).is_none(), "block {block} is in the cache already");
        let mut member = Member { hash: Some(hash), before: NONE, after: NONE };
        self.families
            .entry(hash.get())
            .and_modify(|family| {
                self.members[family.last as usize].after = block;
                member.before = family.last;
                family.last = block;
            })
            .or_insert(Family { first: block, last: block });
        self.members[block as usize] = member;
    }

    /// Takes `block` out; returns its content, and whether other blocks hold the same. `None` if it was not in.
    pub fn remove(&mut self, block: u32) -> Option<(BlockHash, bool)> {
        let member = self.members[block as usize];
        let hash = member.hash?;
        self.members[block as usize] = Member { hash: None, before: NONE, after: NONE };
        if member.before == NONE && member.after == NONE {
            self.families.remove(&hash.get());
            return Some((hash, false));
        }
        if member.before != NONE {
            self.members[member.before as usize].after = member.after;
        }
        if member.after != NONE {
            self.members[member.after as usize].before = member.before;
        }
        if let Some(family) = self.families.get_mut(&hash.get()) {
            if family.first == block {
                family.first = member.after;
            }
            if family.last == block {
                family.last = member.before;
            }
        }
        Some((hash, true))
    }
}
