//! How FlashAttention 3 spreads a decode batch over a GPU, and what the spread leaves idle.

use serde::{Deserialize, Serialize};

/// The rule by which FlashAttention 3 cuts the contexts of a decode batch into pieces for the multiprocessors.
///
/// From memory of its scheduler kernel (`flash_prepare_scheduler.cu`), not checked against the source; chosen with the H200's iteration
/// logs of both pools in view. With n_i blocks of the i-th context and H KV heads, a
/// piece is at most `b = ceil(1.1 · H · Σ n_i / multiprocessors)` blocks long, so context i becomes `ceil(n_i / b)` pieces for each head.
/// When the pieces are more than the multiprocessors, some of these get two, and the step waits for them: on the recorded H200 server
/// a batch of 17 took 0.7 ms longer than one of 16, and batches of 9 longer than batches of 10, for this reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SplitKv {
    /// Multiprocessors of the GPU.
    pub multiprocessors: u32,
    /// Tokens of a block of the kernel.
    pub block_tokens: u32,
}

/// Most multiprocessors of any GPU, for a table on the stack.
const MOST: usize = 256;
/// Blocks that starting on a second piece costs (assumed).
const START: u32 = 1;

impl SplitKv {
    /// Tokens of context that the busiest multiprocessor walks over, one after the other, when each of `contexts` is
    /// attended to by `kv_heads` heads.
    pub fn span(&self, contexts: impl Iterator<Item = u32> + Clone, kv_heads: u32) -> u32 {
        let block = self.block_tokens.max(1);
        let blocks: u64 = contexts.clone().map(|context| u64::from(context.div_ceil(block))).sum();
        let multiprocessors = self.multiprocessors.max(1);
        let load = blocks as f64 * 1.1 * f64::from(kv_heads) / f64::from(multiprocessors);
        let piece = (load.ceil() as u32).max(1);
        // The pieces of all heads of one stretch are alike: they fill the GPU side by side.
        let slots = ((multiprocessors / kv_heads.max(1)).max(1) as usize).min(MOST);
        let mut busy = [0u32; MOST];
        let mut taken = 0;
        let mut span = 0;
        for context in contexts {
            let blocks = context.div_ceil(block);
            let pieces = blocks.div_ceil(piece).max(1);
            let each = blocks.div_ceil(pieces);
            let mut left = blocks;
            for _ in 0..pieces {
                let length = each.min(left);
                left -= length;
                let end = if taken < slots {
                    busy[taken] = length;
                    taken += 1;
                    length
                } else {
                    let idle = (0..slots).min_by_key(|slot| busy[*slot]).unwrap_or(0);
                    busy[idle] += length + START;
                    busy[idle]
                };
                span = span.max(end);
            }
        }
        span * block
    }
}

#[cfg(test)]
mod tests {
    use super::SplitKv;

    const H200: SplitKv = SplitKv { multiprocessors: 132, block_tokens: 128 };

    fn span(contexts: &[u32], kv_heads: u32) -> u32 {
        H200.span(contexts.iter().copied(), kv_heads)
    }

    #[test]
    fn sixteen_long_contexts_fit_and_seventeen_do_not() {
        // 16 x 4 heads x 2 pieces = 128 of 132; 17 x 4 x 2 = 136.
        assert_eq!(span(&[7168; 16], 4), 28 * 128);
        assert_eq!(span(&[7168; 17], 4), (2 * 28 + 1) * 128);
    }

    #[test]
    fn one_context_is_cut_into_as_many_pieces_as_its_heads_leave_room_for() {
        let alone = span(&[8192], 4);
        assert!(alone <= 3 * 128, "{alone}");
        assert_eq!(span(&[1], 4), 128);
        assert_eq!(H200.span(std::iter::empty(), 4), 0);
    }

    #[test]
    fn many_short_contexts_queue_up() {
        assert!(span(&[128; 256], 8) >= 256 / 16 * 128);
    }
}
