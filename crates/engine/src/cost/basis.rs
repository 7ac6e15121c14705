//! What a step is made of, as the numbers that a fitted profile multiplies with its constants.

use super::graphs::{GraphSizes, Launch, is_decode};
use super::split::SplitKv;
use crate::batch::StepShape;
use crate::catalog::{Deployment, ModelShape};

/// Number of basis functions.
pub const BASIS: usize = 16;

/// A step as the values of the basis functions.
pub type BasisValues = [f64; BASIS];

/// Names of the basis functions, in order. They are the keys of a profile's constants; each constant is the seconds that
/// one unit of the function takes. All functions are non-negative, so that a non-negative fit is monotone.
///
/// | name | value |
/// | --- | --- |
/// | `step` | 1 |
/// | `graph_above_8` ... `graph_above_128` | 1 in a pure decode step padded to more requests than that |
/// | `padded_requests` | requests of a pure decode step, padded to its CUDA graph |
/// | `decode_context` | cached tokens that a pure decode step reads |
/// | `decode_span` | of these, what the busiest multiprocessor walks over ([`SplitKv::span`]); 0 without a rule for it |
/// | `sampled` | requests for which a token is sampled |
/// | `no_full_graph` | 1 in a pure decode step that fits no full graph |
/// | `mixed_step` | 1 in a step that prefills |
/// | `mixed_tokens` | tokens of such a step, padded |
/// | `mixed_context` | cached tokens that its decodes read |
/// | `chunk_context` | Σ n·(c + n/2) over its chunks of n tokens on c cached ones |
/// | `mixed_longest` | the longest context among its decodes, which one thread block walks |
pub const BASIS_NAMES: [&str; BASIS] = [
    "step",
    "graph_above_8",
    "graph_above_16",
    "graph_above_32",
    "graph_above_64",
    "graph_above_128",
    "padded_requests",
    "decode_context",
    "decode_span",
    "sampled",
    "no_full_graph",
    "mixed_step",
    "mixed_tokens",
    "mixed_context",
    "chunk_context",
    "mixed_longest",
];

/// What the basis functions need to know besides the step.
#[derive(Debug, Clone)]
pub struct StepBasis {
    graphs: GraphSizes,
    split: Option<SplitKv>,
    kv_heads: u32,
    reach: Reach,
}

impl StepBasis {
    /// For steps of `deployment` with CUDA graphs of these sizes; `split` where the GPU's attention kernel is known to cut
    /// contexts by that rule ([`crate::catalog::Gpu::split_kv`]).
    pub fn new(deployment: &Deployment, graphs: GraphSizes, split: Option<SplitKv>) -> Self {
        let (_, kv_heads) = deployment.heads_per_gpu();
        Self { graphs, split, kv_heads: kv_heads as u32, reach: Reach::of(&deployment.shape) }
    }

    /// How a step is run.
    pub fn launch(&self, shape: &StepShape<'_>) -> Launch {
        self.graphs.launch(shape)
    }

    /// The values of the basis functions for a step. Sliding layers see no more than their window; a context counts as the
    /// mean over the layers then.
    pub fn values(&self, shape: &StepShape<'_>) -> BasisValues {
        let launch = self.graphs.launch(shape);
        let padded = f64::from(launch.tokens());
        let (mut context, mut longest, mut chunks) = (0.0, 0.0_f64, 0.0);
        for request in shape.requests {
            let (tokens, computed) = (f64::from(request.tokens), f64::from(request.computed));
            if request.tokens == 1 {
                let seen = self.reach.seen(computed + 1.0);
                context += seen;
                longest = longest.max(seen);
            } else {
                chunks += tokens * (self.reach.seen(computed) + self.reach.seen(tokens / 2.0));
            }
        }
        let sampled = f64::from(shape.sampling);
        if !is_decode(shape) {
            return [
                1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, sampled, 0.0, 1.0, padded, context, chunks,
                longest,
            ];
        }
        let span = self.split.map_or(0, |split| {
            split.span(shape.requests.iter().map(|request| request.computed + 1), self.kv_heads)
        });
        let above = |size: f64| f64::from(padded > size);
        let no_full_graph = f64::from(!matches!(launch, Launch::Full(_)));
        [
            1.0,
            above(8.0),
            above(16.0),
            above(32.0),
            above(64.0),
            above(128.0),
            padded,
            context,
            f64::from(span),
            sampled,
            no_full_graph,
            0.0,
            0.0,
            0.0,
            0.0,
            0.0,
        ]
    }
}

/// How far back the layers look, on average.
#[derive(Debug, Clone, Copy)]
struct Reach {
    sliding_share: f64,
    window: f64,
}

impl Reach {
    fn of(model: &ModelShape) -> Self {
        match model.window {
            None => Self { sliding_share: 0.0, window: f64::INFINITY },
            Some(window) => Self {
                sliding_share: f64::from(window.layers) / f64::from(model.layers),
                window: window.tokens as f64,
            },
        }
    }

    fn seen(&self, tokens: f64) -> f64 {
        if self.sliding_share == 0.0 {
            return tokens;
        }
        (1.0 - self.sliding_share) * tokens + self.sliding_share * tokens.min(self.window)
    }
}
