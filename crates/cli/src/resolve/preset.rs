//! Servers with names: what is meant where no flag says otherwise.
//!
//! A preset is a set of values. A flag that names a value of the set changes nothing; a flag that names another value of
//! what the server is (model, GPU, parallelism, type of the cache, share of the memory, profile) makes it another server,
//! to which the pool and the limits of the preset do not belong.

use super::model::Model;
use crate::args::engine::{EngineArgs, Preset};
use precipice_engine::catalog::{Gpu, known_shape};

/// The values of a preset.
#[derive(Debug)]
pub(crate) struct PresetServer {
    /// As `--preset` names it.
    pub(crate) name: &'static str,
    pub(crate) model: &'static str,
    pub(crate) gpu: &'static str,
    /// Tokens of the KV pool, as its start-up log states them.
    pub(crate) pool_tokens: u32,
    pub(crate) max_num_seqs: u32,
    pub(crate) max_model_len: u32,
}

/// The server of the overload report, round two.
pub(crate) static PRESET: PresetServer = PresetServer {
    name: "report-round2",
    model: "Qwen2.5-7B",
    gpu: "RTX 4090",
    pool_tokens: 120_064,
    max_num_seqs: 128,
    max_model_len: 8192,
};

/// The share of the memory that vLLM takes by default.
const UTILIZATION: f64 = 0.92;

impl Preset {
    /// Its values; none without a preset.
    pub(crate) fn server(self) -> Option<&'static PresetServer> {
        match self {
            Self::ReportRound2 => Some(&PRESET),
            Self::None => None,
        }
    }
}

impl PresetServer {
    /// The flags, the model and the GPU are this server's.
    pub(crate) fn is(&self, args: &EngineArgs, model: &Model, gpu: &Gpu) -> bool {
        let same_model =
            known_shape(self.model).is_ok_and(|known| known.fingerprint() == model.shape.fingerprint());
        same_model
            && gpu.name == self.gpu
            && args.gpu_memory.is_none()
            && args.profile.is_none()
            && args.tensor_parallel_size == 1
            && args.kv_cache_dtype == "auto"
            && args.gpu_memory_utilization == UTILIZATION
    }
}
