//! What the tokens of a request are, and what that makes of its blocks.

use precipice_workload::TokenRun;
use std::num::NonZeroU64;

/// Identity of the content of a block *and of everything before it*, as in vLLM: a chain over full blocks.
///
/// 64 bits: with a million blocks in the cache the chance that any two different ones collide is below 1e-7.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockHash(NonZeroU64);

impl BlockHash {
    /// The number itself; its bits are well mixed.
    pub fn get(self) -> u64 {
        self.0.get()
    }
}

/// The tokens of a request: its prompt, and the stream that its output comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    ids: Vec<u32>,
    runs: Vec<TokenRun>,
}

impl Content {
    /// A synthetic prompt. Output token `j` is the one at place `output_start + j` of stream `output_stream`;
    /// give every request a stream of its own unless outputs are to be found again in later prompts.
    pub fn from_runs(mut prompt: Vec<TokenRun>, output_stream: u64, output_start: u32) -> Self {
        prompt.push(TokenRun { stream: output_stream, start: output_start, len: u32::MAX });
        Self { ids: Vec::new(), runs: prompt }
    }

    /// A prompt of `prompt` tokens that shares no beginning with that of any other number.
    pub fn unshared(number: u64, prompt: u32) -> Self {
        let own = unique_stream(1, number);
        Self::from_runs(vec![TokenRun { stream: own, start: 0, len: prompt }], own, prompt)
    }

    /// A prompt of token ids. Its blocks never equal those of a synthetic prompt.
    pub fn from_ids(prompt: Vec<u32>, output_stream: u64) -> Self {
        Self { ids: prompt, runs: vec![TokenRun { stream: output_stream, start: 0, len: u32::MAX }] }
    }

    /// Length of the prompt in tokens.
    pub fn prompt_tokens(&self) -> u64 {
        let runs = &self.runs[..self.runs.len() - 1];
        self.ids.len() as u64 + runs.iter().map(|run| u64::from(run.len)).sum::<u64>()
    }
}

/// A stream that no other number of the same kind has: `kind` tells apart those who number independently.
pub fn unique_stream(kind: u64, number: u64) -> u64 {
    mix(mix(SEED, kind), number)
}

/// The identities of a request's blocks, made one after the other as they are asked for.
///
/// A place in a block is a stretch of a stream; neighbouring stretches that continue each other are one, so that
/// equal tokens give equal hashes however the prompt was cut into runs.
#[derive(Debug, Clone, Default)]
pub struct HashChain {
    hashes: Vec<BlockHash>,
    run: usize,
    used: u32,
}

impl HashChain {
    /// The identities of the first `blocks` blocks of `content`.
    pub fn up_to(&mut self, blocks: usize, block_size: u32, content: &Content) -> &[BlockHash] {
        while self.hashes.len() < blocks {
            let hash = self.next(block_size, content);
            self.hashes.push(hash);
        }
        &self.hashes[..blocks]
    }

    fn next(&mut self, block_size: u32, content: &Content) -> BlockHash {
        let mut hash = self.hashes.last().map_or(SEED, |parent| parent.get());
        let begin = self.hashes.len() * block_size as usize;
        let end = (begin + block_size as usize).min(content.ids.len());
        let mut left = block_size;
        if begin < end {
            hash = mix(hash, IDS);
            for id in &content.ids[begin..end] {
                hash = mix(hash, u64::from(*id));
            }
            left -= (end - begin) as u32;
        }
        let mut piece: Option<TokenRun> = None;
        while left > 0 {
            let run = content.runs[self.run];
            let len = left.min(run.len - self.used);
            let start = run.start.wrapping_add(self.used);
            match &mut piece {
                Some(last) if last.stream == run.stream && last.start.wrapping_add(last.len) == start => {
                    last.len += len;
                }
                _ if len == 0 => {}
                _ => {
                    hash = piece.map_or(hash, |last| mix_run(hash, last));
                    piece = Some(TokenRun { stream: run.stream, start, len });
                }
            }
            left -= len;
            self.used += len;
            if self.used == run.len {
                self.run += 1;
                self.used = 0;
            }
        }
        hash = piece.map_or(hash, |last| mix_run(hash, last));
        BlockHash(NonZeroU64::new(hash).unwrap_or(NonZeroU64::MIN))
    }
}

/// Where a chain begins.
const SEED: u64 = 0x9E37_79B9_7F4A_7C15;
/// Tells a block with token ids from one of runs.
const IDS: u64 = 0xD6E8_FEB8_6659_FD93;

fn mix_run(hash: u64, run: TokenRun) -> u64 {
    mix(mix(hash, run.stream), u64::from(run.start) << 32 | u64::from(run.len))
}

/// Folded multiplication (as in wyhash), with a finishing shift.
fn mix(hash: u64, value: u64) -> u64 {
    let product = u128::from(hash ^ 0xA076_1D64_78BD_642F) * u128::from(value ^ 0xE703_7ED1_A0B4_28DB);
    let folded = product as u64 ^ (product >> 64) as u64;
    (folded ^ folded >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93)
}

#[cfg(test)]
mod tests {
    use super::{Content, HashChain};
    use precipice_workload::TokenRun;

    fn hashes(content: &Content, blocks: usize) -> Vec<super::BlockHash> {
        HashChain::default().up_to(blocks, 4, content).to_vec()
    }

    fn run(stream: u64, start: u32, len: u32) -> TokenRun {
        TokenRun { stream, start, len }
    }

    #[test]
    fn equal_tokens_are_equal_however_they_are_cut() {
        let whole = Content::from_runs(vec![run(1, 0, 10)], 9, 0);
        let cut = Content::from_runs(vec![run(1, 0, 3), run(1, 3, 0), run(1, 3, 7)], 9, 0);
        assert_eq!(hashes(&whole, 5), hashes(&cut, 5));
    }

    #[test]
    fn one_other_token_changes_its_block_and_all_after_it() {
        let one = hashes(&Content::from_runs(vec![run(1, 0, 12)], 9, 0), 3);
        let other = hashes(&Content::from_runs(vec![run(1, 0, 5), run(2, 0, 1), run(1, 6, 6)], 9, 0), 3);
        assert_eq!(one[0], other[0]);
        assert_ne!(one[1], other[1]);
        assert_ne!(one[2], other[2]);
    }

    #[test]
    fn an_output_that_comes_back_in_a_prompt_is_found() {
        let first = Content::from_runs(vec![run(0, 100, 6)], 0, 1000);
        let later = Content::from_runs(vec![run(0, 100, 6), run(0, 1000, 6)], 0, 2000);
        assert_eq!(hashes(&first, 3), hashes(&later, 3));
        assert_ne!(hashes(&first, 4)[3], hashes(&later, 4)[3]);
    }

    #[test]
    fn ids_go_on_into_the_output() {
        let one = Content::from_ids(vec![1, 2, 3, 4, 5], 7);
        let same = Content::from_ids(vec![1, 2, 3, 4, 5], 7);
        let other_output = Content::from_ids(vec![1, 2, 3, 4, 5], 8);
        assert_eq!(one.prompt_tokens(), 5);
        assert_eq!(hashes(&one, 3), hashes(&same, 3));
        assert_eq!(hashes(&one, 1), hashes(&other_output, 1));
        assert_ne!(hashes(&one, 2)[1], hashes(&other_output, 2)[1]);
    }
}
