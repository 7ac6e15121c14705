//! What a request needs of the pool, and whether it gets it (vLLM's `allocate_slots`).

use super::Scheduler;

impl Scheduler {
    /// Blocks for `tokens` more tokens of a running request; false when the pool has too few.
    pub(super) fn grow(&mut self, slot: u32, tokens: u32) -> bool {
        let size = self.config.block_size;
        let request = &mut self.requests[slot];
        let held = request.blocks.len() as u32;
        let end = request.computed.min(self.config.max_model_len) + tokens;
        let blocks = end.min(self.config.max_model_len).div_ceil(size);
        if blocks > held {
            if blocks - held > self.pool.free_blocks() {
                return false;
            }
            self.pool.take(blocks - held, &mut request.blocks);
        }
        self.publish(slot, end);
        true
    }

    /// Blocks for the first `tokens` tokens of a waiting request beyond what the pool just found for it; false, and
    /// nothing changed, when the pool has too few.
    pub(super) fn admit(&mut self, slot: u32, tokens: u32) -> bool {
        let (size, window) = (self.config.block_size, self.config.max_model_len);
        let request = &mut self.requests[slot];
        let (found, idle) = (self.pool.found().len() as u32, self.pool.found_idle());
        let kept_free = if self.running.is_empty() { 0 } else { self.watermark_blocks };
        let free = self.pool.free_blocks();
        let short = |until: u32| {
            let blocks = until.min(window).div_ceil(size).saturating_sub(found);
            u64::from(blocks) + u64::from(idle) + u64::from(kept_free) > u64::from(free)
        };
        let end = (found * size).min(window) + tokens;
        if (self.config.scheduler_reserve_full_isl && short(request.tokens)) || short(end) {
            return false;
        }
        self.pool.share_found(&mut request.blocks);
        request.published = found;
        let more = end.min(window).div_ceil(size).saturating_sub(found);
        self.pool.take(more, &mut request.blocks);
        self.publish(slot, end);
        true
    }

    /// Enters the full blocks of a request's first `end` known tokens in the prefix cache.
    pub(super) fn publish(&mut self, slot: u32, end: u32) {
        if !self.pool.caches() {
            return;
        }
        let size = self.config.block_size;
        let request = &mut self.requests[slot];
        let full = end.min(request.tokens) / size;
        if full > request.published {
            self.pool.publish(
                &request.blocks,
                request.published,
                full,
                &mut request.hashes,
                &request.content,
                size,
            );
            request.published = full;
        }
    }
}
