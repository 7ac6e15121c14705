//! The runs of the H200 server, as `precipice import` makes them.

use precipice_archive::import::{Files, VLLM_BENCH, import};
use precipice_decide::calibrate::Options;
use precipice_engine::catalog::{Deployment, Gpu, known_shape};
use precipice_record::Run;
use std::path::PathBuf;

/// The five runs with a pool of 120,064 tokens.
pub(crate) const KV6: [&str; 5] = [
    "kv6.41-seqs128/overload-6144x2048-c64-a",
    "kv6.41-seqs128/conc-1024x256-c16",
    "kv6.41-seqs128/conc-1024x256-c64",
    "kv6.41-seqs128/len-2048x256-c16",
    "kv6.41-seqs128/len-6144x256-c16",
];
/// The run with a pool of 74,896 tokens.
pub(crate) const KV4: &str = "kv4-seqs128/overload-6144x2048-c64";

/// Imports a run.
pub(crate) fn run(name: &str) -> Run {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/vllm-h200-0.26.0");
    let (server, _) = name.split_once('/').unwrap();
    import(
        VLLM_BENCH,
        &Files {
            result: root.join(name).join("bench.json.gz"),
            metrics: vec![
                root.join(name).join("metrics.txt.gz"),
                root.join(name).join("metrics_full_start.prom.gz"),
            ],
            server_log: Some(root.join(server).join("server.log.gz")),
            iterations: Some(root.join(server).join("iterations.csv.gz")),
            ..Files::default()
        },
    )
    .unwrap()
}

/// What is known of the server beside its runs.
pub(crate) fn options() -> Options {
    Options {
        name: "test".to_owned(),
        model: "Qwen2.5-7B".to_owned(),
        deployment: Deployment::new(known_shape("Qwen2.5-7B").unwrap()),
        gpu: Some(Gpu::named("H200").unwrap()),
        tool: "test".to_owned(),
        partial: false,
    }
}
