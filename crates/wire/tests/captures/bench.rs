//! Results of `vllm bench serve`.

use crate::bytes;
use precipice_wire::vllm_bench::{BenchError, parse};

const FILE: &str = "bench/h200-conc-1024x256-c16.json";

#[test]
fn a_detailed_result() {
    let bench = parse(&bytes(FILE)).unwrap().pop().unwrap();
    assert_eq!((bench.detailed(), bench.completed, bench.failed), (32, Some(32), Some(0)));
    assert_eq!((bench.request_rate, bench.max_concurrency), (Some(f64::INFINITY), Some(16.0)));
    assert_eq!(bench.itls.iter().map(Vec::len).sum::<usize>(), 32 * 255);
    assert_eq!(bench.output_lens.iter().sum::<f64>(), 32.0 * 256.0);
    let throughput = bench.total_output_tokens.unwrap() / bench.duration.unwrap();
    let told = bench.other["output_throughput"].as_f64().unwrap();
    assert!((throughput - told).abs() < 1e-9 * told, "{throughput} {told}");
}

#[test]
fn the_same_cut_short() {
    let file = bytes(FILE);
    for cut in (1..file.trim_ascii_end().len()).step_by(997) {
        let error = parse(&file[..cut]).unwrap_err();
        assert!(matches!(error, BenchError::CutShort { byte, .. } if byte == cut), "{cut}: {error}");
    }
}
