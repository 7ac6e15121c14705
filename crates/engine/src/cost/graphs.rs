//! CUDA graphs: which batches have one, and what they are padded to.

use crate::batch::StepShape;

/// The batch sizes for which vLLM captures CUDA graphs (0.26 to 0.27.1, `cudagraph_mode` FULL_AND_PIECEWISE).
///
/// Sizes run 1, 2, 4, then by 8 below 256 and by 16 from there, up to `min(2 · max_num_seqs, 512)` and no further
/// than the token budget. All of them are captured piecewise (attention stays outside); those up to `max_num_seqs`
/// also as full graphs, for batches in which every request decodes one token. The recorded H200 server, started with
/// 128 sequences, captured 35 and 19.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphSizes {
    piecewise: Vec<u32>,
    full: usize,
}

/// How a batch is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Launch {
    /// One graph for the whole forward pass, padded to this many requests.
    Full(u32),
    /// A graph for each stretch between attention layers, padded to this many tokens.
    Piecewise(u32),
    /// No graph fits: kernels are launched one by one, without padding.
    Eager(u32),
}

impl Launch {
    /// Tokens that are computed, padding included.
    pub fn tokens(self) -> u32 {
        match self {
            Self::Full(tokens) | Self::Piecewise(tokens) | Self::Eager(tokens) => tokens,
        }
    }
}

impl GraphSizes {
    /// The sizes that vLLM derives from these two limits.
    pub fn new(max_num_seqs: u32, max_num_batched_tokens: u32) -> Self {
        let largest = max_num_seqs.saturating_mul(2).min(512).min(max_num_batched_tokens);
        let piecewise: Vec<u32> = [1, 2, 4]
            .into_iter()
            .chain((8..256).step_by(8))
            .chain((256..=512).step_by(16))
            .filter(|size| *size <= largest)
            .collect();
        let full = piecewise.partition_point(|size| *size <= max_num_seqs);
        Self { piecewise, full }
    }

    /// No graphs at all (`--enforce-eager`).
    pub fn none() -> Self {
        Self { piecewise: Vec::new(), full: 0 }
    }

    /// Sizes of piecewise graphs, ascending.
    pub fn piecewise(&self) -> &[u32] {
        &self.piecewise
    }

    /// Sizes of full graphs, ascending.
    pub fn full(&self) -> &[u32] {
        &self.piecewise[..self.full]
    }

    /// How a step is run.
    pub fn launch(&self, shape: &StepShape<'_>) -> Launch {
        let tokens = shape.tokens;
        let at = self.piecewise.partition_point(|size| *size < tokens);
        match self.piecewise.get(at) {
            Some(&size) if at < self.full && is_decode(shape) => Launch::Full(size),
            Some(&size) => Launch::Piecewise(size),
            None => Launch::Eager(tokens),
        }
    }
}

/// Every request of the step computes one token.
pub(super) fn is_decode(shape: &StepShape<'_>) -> bool {
    shape.tokens as usize == shape.requests.len()
}
