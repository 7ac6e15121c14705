//! Tables of kernel times of an RTX 4090, and a run of that card which they know nothing of.

use crate::recorded::options;
use flate2::read::GzDecoder;
use precipice_decide::calibrate::{CalibrateError, Calibration, Limits, Options, Tables, from_kernels};
use precipice_engine::catalog::{Deployment, Gpu, known_shape};
use std::io::Read;
use std::path::PathBuf;

fn data(name: &str) -> Vec<u8> {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../engine/tests/data/llmservingsim-rtx4090");
    std::fs::read(dir.join(name)).unwrap()
}

fn unpacked(name: &str) -> String {
    let mut text = String::new();
    GzDecoder::new(&data(name)[..]).read_to_string(&mut text).unwrap();
    text
}

fn fitted(dense: &str) -> Result<Calibration, CalibrateError> {
    let attention = unpacked("profile_attention.csv.gz");
    let per_sequence = String::from_utf8(data("profile_per_sequence.csv")).unwrap();
    let limits = Limits {
        max_num_batched_tokens: 2048,
        max_num_seqs: 256,
        max_model_len: u32::MAX,
        pool_tokens: Some(131_072),
        longest_prompt: None,
    };
    let options = Options {
        deployment: Deployment::new(known_shape("Llama-3.1-8B").unwrap()),
        gpu: Some(Gpu::named("RTX 4090").unwrap()),
        ..options()
    };
    from_kernels(
        Tables { dense, attention: &attention, per_sequence: &per_sequence },
        &limits,
        &options,
        "tables",
    )
}

#[test]
fn the_tables_are_repeated() {
    let fitted = fitted(&unpacked("profile_dense.csv.gz")).unwrap();
    for residual in &fitted.profile.residuals {
        println!("{:<20} {:>6} {:+.2} %", residual.region, residual.n, residual.bias * 100.0);
        assert!(residual.bias.abs() < 0.09, "{residual:?}");
    }
    let constant = |name: &str| fitted.profile.constants[name];
    // 16.06 GB of weights at 1.008 TB/s take 15.9 ms, and a token of KV 131,072 B.
    assert!((0.0155..0.0170).contains(&constant("step")), "{}", constant("step"));
    assert!((1.2e-7..1.6e-7).contains(&constant("decode_context")), "{}", constant("decode_context"));
}

#[test]
fn a_broken_table_names_its_line() {
    let error = fitted("layer,tokens,time_us\nqkv_proj,1,12.5\nqkv_proj,2,fast\n").unwrap_err().to_string();
    assert!(
        error.contains("profile_dense.csv") && error.contains("line 3") && error.contains("time_us"),
        "{error}"
    );
    assert!(fitted("layer,tokens,time_us\n").unwrap_err().to_string().contains("no rows"));
}
