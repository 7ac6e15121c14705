//! The RTX 4090's figures are what its kernel times say.

use crate::kernels::Kernels;
use precipice_engine::catalog::{Gpu, Mark};

#[test]
fn the_catalog_repeats_what_the_kernel_times_say() {
    let gpu = Gpu::named("RTX 4090").unwrap();
    let figures = gpu.efficiency.figures();
    let kernels = Kernels::read();
    let mut start = 0.0;
    for (name, measured) in kernels.efficiencies() {
        let (_, figure) = figures.iter().find(|(known, _)| *known == name).unwrap();
        assert_eq!(figure.mark, Mark::Measured, "{name}");
        assert!((figure.value / measured - 1.0).abs() < 0.01, "{name}: {} against {measured}", figure.value);
        if name == "gemm_start" {
            start = figure.value;
        }
    }
    for (tokens, multiple) in gpu.efficiency.gemm_table.unwrap() {
        assert!(kernels.tokens().contains(&(tokens as u32)), "{tokens} tokens were not profiled");
        let measured = kernels.gemm_multiple(tokens as u32, start);
        assert!((multiple / measured - 1.0).abs() < 1e-3, "{tokens} tokens: {multiple} against {measured}");
    }
}
