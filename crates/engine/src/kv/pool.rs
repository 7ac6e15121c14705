//! The blocks, their free list and their owners.

use super::prefix::PrefixCache;
use super::probe::Probe;
use super::{BlockHash, Content, HashChain};

/// vLLM's null block: never given out. Here it also is the two ends of the free list.
const NULL_BLOCK: u32 = 0;

/// A block's neighbours in the free list.
#[derive(Debug, Clone, Copy)]
struct Link {
    before: u32,
    after: u32,
}

/// The KV pool.
///
/// Free blocks form a list; blocks are taken from its front. A freed block that can be found in the prefix cache
/// goes to the back, so that what was freed last is overwritten last; one that cannot goes to the front.
#[derive(Debug, Clone)]
pub struct BlockPool {
    links: Vec<Link>,
    owners: Vec<u32>,
    free: u32,
    cache: Option<PrefixCache>,
    /// Without a cache, freed blocks are the next to be taken.
    uncached_first: bool,
    probe: Probe,
}

impl BlockPool {
    /// A pool of `blocks` blocks, the null block included.
    pub fn new(blocks: u32, prefix_caching: bool) -> Self {
        let links = (0..blocks)
            .map(|block| Link {
                before: block.checked_sub(1).unwrap_or(blocks - 1),
                after: (block + 1) % blocks,
            })
            .collect();
        Self {
            links,
            owners: vec![0; blocks as usize],
            free: blocks - 1,
            cache: prefix_caching.then(|| PrefixCache::new(blocks)),
            uncached_first: false,
            probe: Probe::new(blocks),
        }
    }

    /// The order without a prefix cache: freed blocks are the next to be taken, not the last.
    #[must_use]
    pub fn reusing_first(self, uncached_first: bool) -> Self {
        Self { uncached_first, ..self }
    }

    /// Free blocks, those with findable content included.
    pub fn free_blocks(&self) -> u32 {
        self.free
    }

    /// Blocks that can be given out at all.
    pub fn usable_blocks(&self) -> u32 {
        self.links.len() as u32 - 1
    }

    /// Share of the usable blocks that live requests hold, 0..1, as vLLM reports it.
    pub fn usage(&self) -> f64 {
        1.0 - f64::from(self.free) / f64::from(self.usable_blocks())
    }

    /// Freed blocks can be found by their content.
    pub fn caches(&self) -> bool {
        self.cache.is_some()
    }

    /// Looks for the blocks that hold the longest known beginning of a sequence: [`Self::found`]. The walk is made
    /// anew only for another request (`slot`, `serial`) or length than last time, or when the cache changed where
    /// it matters.
    pub fn find_prefix(&mut self, slot: u32, serial: u32, hashes: &[BlockHash]) {
        if self.probe.knows(slot, serial, hashes.len()) {
            return;
        }
        self.probe.begin(slot, serial, hashes.len());
        let Some(cache) = &self.cache else { return };
        for &hash in hashes {
            let Some(block) = cache.find(hash) else {
                self.probe.stopped(hash);
                break;
            };
            self.probe.push(block, self.owners[block as usize]);
        }
    }

    /// The blocks that the last look-up found.
    pub fn found(&self) -> &[u32] {
        self.probe.found()
    }

    /// Of the blocks found, those that no request holds: these would leave the free list.
    pub fn found_idle(&self) -> u32 {
        self.probe.idle()
    }

    /// One more owner for each of the blocks found, which are appended to `into`.
    pub fn share_found(&mut self, into: &mut Vec<u32>) {
        let held = into.len();
        into.extend_from_slice(self.probe.found());
        self.probe.forget();
        for &block in &into[held..] {
            if self.owners[block as usize] == 0 {
                self.unlink(block);
            }
            self.owners[block as usize] += 1;
        }
    }

    /// Takes `count` blocks from the front of the free list; their content can no longer be found.
    ///
    /// The caller has checked that so many are free.
    pub fn take(&mut self, count: u32, into: &mut Vec<u32>) {
        debug_assert!(count <= self.free, "{count} blocks asked, {} free", self.free);
        for _ in 0..count {
            let block = self.links[NULL_BLOCK as usize].after;
            self.unlink(block);
            if let Some((hash, others)) = self.cache.as_mut().and_then(|cache| cache.remove(block)) {
                self.probe.lost(block, hash, others, &self.owners);
            }
            self.owners[block as usize] = 1;
            into.push(block);
        }
    }

    /// One owner less for each of a request's `blocks`, which are emptied; the tail is freed first.
    pub fn release(&mut self, blocks: &mut Vec<u32>) {
        let mut front = NULL_BLOCK;
        while let Some(block) = blocks.pop() {
            self.owners[block as usize] -= 1;
            if self.owners[block as usize] > 0 {
                continue;
            }
            self.probe.idled(block);
            match &self.cache {
                // Blocks without findable content go before all others, in the order in which they come.
                Some(cache) if cache.hash_of(block).is_none() => {
                    self.link(block, front);
                    front = block;
                }
                None if self.uncached_first => {
                    self.link(block, front);
                    front = block;
                }
                _ => self.link(block, self.links[NULL_BLOCK as usize].before),
            }
        }
    }

    /// Makes the full blocks `from..to` of a sequence findable.
    pub fn publish(
        &mut self,
        blocks: &[u32],
        from: u32,
        to: u32,
        hashes: &mut HashChain,
        content: &Content,
        size: u32,
    ) {
        if let Some(cache) = &mut self.cache {
            let hashes = hashes.up_to(to as usize, size, content);
            for index in from as usize..to as usize {
                cache.insert(blocks[index], hashes[index]);
                self.probe.entered(hashes[index]);
            }
        }
    }

    /// Owners of a block.
    pub fn owners(&self, block: u32) -> u32 {
        self.owners[block as usize]
    }

    /// The free list from front to back.
    pub fn free_list(&self) -> impl Iterator<Item = u32> + '_ {
        let next = |block: u32| Some(self.links[block as usize].after).filter(|after| *after != NULL_BLOCK);
        std::iter::successors(next(NULL_BLOCK), move |block| next(*block))
    }

    fn unlink(&mut self, block: u32) {
        let Link { before, after } = self.links[block as usize];
        self.links[before as usize].after = after;
        self.links[after as usize].before = before;
        self.free -= 1;
    }

    /// Puts `block` behind `before`.
    fn link(&mut self, block: u32, before: u32) {
        let after = self.links[before as usize].after;
        self.links[block as usize] = Link { before, after };
        self.links[before as usize].after = block;
        self.links[after as usize].before = block;
        self.free += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::BlockPool;
    use crate::kv::{Content, HashChain};

    fn list(pool: &BlockPool) -> Vec<u32> {
        pool.free_list().collect()
    }

    #[test]
    fn blocks_without_content_are_freed_to_the_front() {
        let mut pool = BlockPool::new(7, true);
        let (mut chain, content) = (HashChain::default(), Content::from_runs(Vec::new(), 1, 0));
        let mut blocks = Vec::new();
        pool.take(3, &mut blocks);
        pool.publish(&blocks, 0, 2, &mut chain, &content, 16);
        assert_eq!(list(&pool), [4, 5, 6]);
        pool.release(&mut blocks);
        assert_eq!(list(&pool), [3, 4, 5, 6, 2, 1]);
    }

    #[test]
    fn without_a_cache_all_are_freed_to_the_back() {
        let mut pool = BlockPool::new(5, false);
        let mut blocks = Vec::new();
        pool.take(3, &mut blocks);
        pool.release(&mut blocks);
        assert_eq!(list(&pool), [4, 3, 2, 1]);
    }

    #[test]
    fn without_a_cache_later_releases_free_all_to_the_front() {
        let mut pool = BlockPool::new(5, false).reusing_first(true);
        let mut blocks = Vec::new();
        pool.take(3, &mut blocks);
        pool.release(&mut blocks);
        assert_eq!(list(&pool), [3, 2, 1, 4]);
    }

    #[test]
    fn of_equal_blocks_the_oldest_that_is_left_is_found() {
        let mut pool = BlockPool::new(4, true);
        let content = Content::from_runs(Vec::new(), 1, 0);
        let mut chain = HashChain::default();
        let hashes = chain.up_to(1, 16, &content).to_vec();
        let mut owned: Vec<Vec<u32>> = (0..3)
            .map(|_| {
                let mut blocks = Vec::new();
                pool.take(1, &mut blocks);
                pool.publish(&blocks, 0, 1, &mut chain, &content, 16);
                blocks
            })
            .collect();
        let find = |pool: &mut BlockPool| {
            pool.find_prefix(0, 0, &hashes);
            pool.found().to_vec()
        };
        assert_eq!(find(&mut pool), [1]);
        pool.release(&mut owned[1]);
        pool.take(1, &mut Vec::new());
        assert_eq!(find(&mut pool), [1]);
        pool.release(&mut owned[0]);
        pool.take(1, &mut Vec::new());
        assert_eq!(find(&mut pool), [3]);
    }
}
