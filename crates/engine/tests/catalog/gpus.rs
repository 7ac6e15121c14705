//! GPUs and the memory that is left on them.

use precipice_engine::VllmVersion;
use precipice_engine::catalog::{
    Deployment, Gpu, KvDtype, Mark, PoolEstimate, PoolSettings, known_models, known_shape,
};

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
    let defaults = |name| Gpu::named(name).unwrap().serve_defaults(VllmVersion::V0_27);
    for name in ["RTX 4090", "L40S", "A100", "A100 40GB PCIe", "L4"] {
        assert_eq!(defaults(name), (2048, 256), "{name}");
    }
    for name in ["H100", "H200", "B200", "MI300X"] {
        assert_eq!(defaults(name), (8192, 1024), "{name}");
    }
    // From 160 GiB on, since 0.28.
    let later = |name| Gpu::named(name).unwrap().serve_defaults(VllmVersion::V0_28);
    assert_eq!(["H200", "B200", "MI300X"].map(later), [(8192, 1024), (16_384, 1024), (16_384, 1024)]);
}

const REPORT: PoolSettings = PoolSettings {
    gpu_memory_utilization: 0.92,
    max_num_batched_tokens: 2048,
    max_num_seqs: 128,
    block_size: 16,
    max_model_len: 8192,
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
    let of = |model: &str| Deployment::new(known_shape(model).unwrap());
    let refusal = |gpu: &str, model: &str, settings: &PoolSettings| {
        PoolEstimate::new(&Gpu::named(gpu).unwrap(), &of(model), settings).unwrap_err().to_string()
    };
    let text = refusal("RTX 4090", "Llama-3.1-70B", &REPORT);
    assert!(text.contains("needs 8 such GPUs with --tensor-parallel-size 8"), "{text}");
    assert!(text.contains("141.1 GB of weights") && text.contains("or quantised weights"), "{text}");
    assert!(!text.contains("--max-model-len"), "no window is short enough: {text}");
    // Room for the weights, but not for one request: the window helps as well.
    let window = PoolSettings { max_model_len: 131_072, ..REPORT };
    let text = refusal("RTX 4090", "Llama-3.1-8B", &window);
    assert!(
        text.contains("one request of 131072 tokens") && text.contains("--max-model-len of at most"),
        "{text}"
    );
    assert!(text.contains("--tensor-parallel-size 2"), "{text}");
    // In blocks of 128 quantised weights it cannot be shared over more than 16, which are not enough of these.
    let text = refusal("L4", "DeepSeek-V3", &REPORT);
    assert!(text.contains("another GPU") && text.contains("(1, 2, 4, 8, 16)"), "{text}");
    let awq = of("Qwen2.5-32B-Instruct-AWQ").with_kv_dtype(KvDtype::Fp8);
    assert!(PoolEstimate::new(&Gpu::named("RTX 4090").unwrap(), &awq, &REPORT).unwrap().tokens > 1000);
}

#[test]
fn the_number_of_gpus_that_is_advised_is_one_that_fits_and_no_smaller_allowed_one_does() {
    let named = |name: &str| Gpu::named(name).unwrap();
    for model in known_models() {
        let deployment = Deployment::new(known_shape(&model).unwrap());
        for gpu in [named("RTX 4090"), named("A100"), named("H200")] {
            let Some(size) = PoolEstimate::gpus_needed(&gpu, &deployment, &REPORT) else { continue };
            for smaller in deployment.shape.tensor_parallel_sizes() {
                let shared = deployment.clone().with_tensor_parallel(smaller).unwrap();
                let fits = PoolEstimate::new(&gpu, &shared, &REPORT).is_ok();
                assert_eq!(fits, smaller >= size, "{model} on {smaller} x {}, {size} advised", gpu.name);
            }
        }
    }
}
