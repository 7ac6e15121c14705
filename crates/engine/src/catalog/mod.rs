//! What is known of models and GPUs.
//!
//! | module | holds |
//! | --- | --- |
//! | `config` | reading a Hugging Face `config.json` |
//! | `shape` | [`ModelShape`], all that memory and arithmetic depend on |
//! | `attention` | [`Attention`] and [`Window`] |
//! | `quantization` | [`Quantization`] of weights |
//! | `parameters` | [`Parameters`], counted exactly |
//! | `parallel` | over how many GPUs a layer can be shared |
//! | `deployment` | [`Deployment`], a shape on GPUs: KV bytes, weight bytes |
//! | `work` | [`StepWork`], FLOPs and traffic by vLLM's formulas |
//! | `expected` | the work of requests that are never preempted |
//! | `known` | models by name |
//! | `gpu` | [`Gpu`], [`Efficiency`], every number with its [`Mark`] and source |
//! | `pool` | [`PoolEstimate`], the memory left for KV |

mod attention;
mod config;
mod deployment;
mod error;
mod expected;
mod gpu;
mod known;
mod parallel;
mod parameters;
mod pool;
mod quantization;
mod shape;
mod work;

pub use attention::{Attention, Window};
pub use config::with_overrides;
pub use deployment::{Deployment, KvDtype};
pub use error::CatalogError;
pub use expected::request_work;
pub use gpu::{Efficiency, Figure, Gpu, Mark};
pub use known::{KnownModel, known_model, known_models, known_shape};
pub use parameters::Parameters;
pub use pool::{PoolEstimate, PoolSettings};
pub use quantization::{Quantization, Reach};
pub use shape::{Experts, ModelShape};
pub use work::StepWork;
