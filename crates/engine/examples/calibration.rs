//! Prints what `catalog/gpus.toml` says of the RTX 4090, from the kernel times in `tests/data/llmservingsim-rtx4090`:
//!
//! ```text
//! cargo run -p precipice-engine --example calibration
//! ```
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program for people, over files of the repository"
)]
#![allow(dead_code, reason = "the tests use the rest of the shared module")]

#[path = "../tests/cost/kernels.rs"]
mod kernels;

fn main() {
    let kernels = kernels::Kernels::read();
    let efficiencies = kernels.efficiencies();
    for (name, value) in &efficiencies {
        println!("{name:<24} {value:.4e}");
    }
    let start = efficiencies.iter().find(|(name, _)| *name == "gemm_start").map_or(0.0, |(_, value)| *value);
    println!("gemm_table");
    for tokens in kernels.tokens() {
        println!("    [{tokens}, {:.4}],", kernels.gemm_multiple(tokens, start));
    }
}
