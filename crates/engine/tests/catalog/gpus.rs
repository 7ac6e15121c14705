//! GPUs and the memory that is left on them.

use precipice_engine::catalog::{Deployment, Gpu, KvDtype, Mark, PoolEstimate, PoolSettings, known_shape};

#[test]
fn every_gpu_is_found_by_its_names() {
    for name in [
        "RTX 3090",
        "rtx4090",
        "NVIDIA GeForce RTX 5090",
        "L4",
        "l40s",
        "A100",
        "h100",
        "H200",
        "B200",
        "MI300X",
        "RTX PRO 6000",
        "RTX 6000 Ada",
        "NVIDIA A100-SXM4-80GB",
        "NVIDIA H100 80GB HBM3",
    ] {
        Gpu::named(name).unwrap_or_else(|error| panic!("{error}"));
    }
    for name in Gpu::known() {
        let gpu = Gpu::named(&name).unwrap();
        assert_eq!(gpu.name, name);
        for (field, figure) in gpu.efficiency.figures() {
            assert!(
                figure.value.is_finite() && figure.value >= 0.0 && !figure.source.is_empty(),
                "{name} {field}"
            );
        }
        let ridge = gpu.bf16.value / gpu.bandwidth.value;
        assert!((50.0..500.0).contains(&ridge), "{name}: {ridge} tokens");
    }
}

#[test]
fn an_unknown_gpu_lists_the_known_and_the_flags() {
    let text = Gpu::named("GTX 750").unwrap_err().to_string();
    for part in ["GTX 750", "RTX 4090", "MI300X", "--gpu-memory", "--gpu-bandwidth", "--gpu-tflops"] {
        assert!(text.contains(part), "{text}");
    }
    let gpu = Gpu::described(48e9, 9e11, 2e14).unwrap();
    assert_eq!((gpu.bandwidth.mark, gpu.memory.value), (Mark::Given, 48e9));
    assert!(Gpu::described(48e9, f64::NAN, 2e14).unwrap_err().to_string().contains("--gpu-bandwidth"));
}

#[test]
fn defaults_by_device() {
    let defaults = |name| Gpu::named(name).unwrap().serve_defaults();
    for name in ["RTX 4090", "L40S", "A100", "A100 40GB PCIe", "L4"] {
        assert_eq!(defaults(name), (2048, 256), "{name}");
    }
    for name in ["H100", "H200", "B200", "MI300X"] {
        assert_eq!(defaults(name), (8192, 1024), "{name}");
    }
}

const REPORT: PoolSettings = PoolSettings {
    gpu_memory_utilization: 0.92,
    max_num_batched_tokens: 2048,
    max_num_seqs: 128,
    block_size: 16,
};

#[test]
fn pools_of_two_known_servers() {
    let gpu = Gpu::named("RTX 4090").unwrap();
    // The report's second round: 120,064 tokens, 6.41 GiB.
    let qwen = Deployment::new(known_shape("Qwen2.5-7B").unwrap());
    let pool = PoolEstimate::new(&gpu, &qwen, &REPORT).unwrap();
    assert!((pool.bytes_low..pool.bytes_high).contains(&(120_064.0 * 57_344.0)), "{pool:?}");
    // LLMServingSim's server: 2588 blocks at a utilization of 0.9 and 256 sequences.
    let llama = Deployment::new(known_shape("Llama-3.1-8B").unwrap());
    let settings = PoolSettings { gpu_memory_utilization: 0.9, max_num_seqs: 256, ..REPORT };
    let pool = PoolEstimate::new(&gpu, &llama, &settings).unwrap();
    assert!((pool.bytes_low..pool.bytes_high).contains(&(2588.0 * 16.0 * 131_072.0)), "{pool:?}");
}

#[test]
fn a_model_that_does_not_fit_says_how_many_gpus_it_needs() {
    let gpu = Gpu::named("RTX 4090").unwrap();
    let text = PoolEstimate::new(&gpu, &Deployment::new(known_shape("Llama-3.1-70B").unwrap()), &REPORT)
        .unwrap_err()
        .to_string();
    assert!(text.contains("needs about 7") && text.contains("--tensor-parallel-size"), "{text}");
    let awq = Deployment::new(known_shape("Qwen2.5-32B-Instruct-AWQ").unwrap()).with_kv_dtype(KvDtype::Fp8);
    assert!(PoolEstimate::new(&gpu, &awq, &REPORT).unwrap().tokens > 1000);
}
