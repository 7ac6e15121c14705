//! Shapes read from `config.json` fields, held against what vLLM computes and what the publishers state.

use precipice_engine::catalog::{
    Attention, CatalogError, Deployment, KvDtype, ModelShape, known_model, known_models, known_shape,
    with_overrides,
};
use serde_json::json;

/// Name, KV bytes per token as vLLM computes them (bf16, one GPU), parameters: the published
/// totals as remembered when this was written (no file was downloaded), without tensors that are stored twice or of another tower.
const KNOWN: [(&str, u64, u64); 37] = [
    ("Qwen2.5-0.5B", 12_288, 494_032_768),
    ("Qwen2.5-1.5B", 28_672, 1_543_714_304),
    ("Qwen2.5-3B", 36_864, 3_085_938_688),
    ("Qwen2.5-7B", 57_344, 7_615_616_512),
    ("Qwen2.5-14B", 196_608, 14_770_033_664),
    ("Qwen2.5-32B", 262_144, 32_763_876_352),
    ("Qwen2.5-72B", 327_680, 72_706_203_648),
    ("Qwen3-0.6B", 114_688, 596_049_920),
    ("Qwen3-1.7B", 114_688, 1_720_574_976),
    ("Qwen3-4B", 147_456, 4_022_468_096),
    ("Qwen3-8B", 147_456, 8_190_735_360),
    ("Qwen3-14B", 163_840, 14_768_307_200),
    ("Qwen3-32B", 262_144, 32_762_123_264),
    ("Qwen3-30B-A3B", 98_304, 30_532_122_624),
    ("Qwen3-235B-A22B", 192_512, 235_093_634_560),
    ("Meta-Llama-3-8B", 131_072, 8_030_261_248),
    ("Llama-3.1-8B", 131_072, 8_030_261_248),
    ("Llama-3.1-70B", 327_680, 70_553_706_496),
    ("Llama-3.1-405B", 516_096, 405_853_388_800),
    ("Llama-3.2-1B", 32_768, 1_235_814_400),
    ("Llama-3.2-3B", 114_688, 3_212_749_824),
    ("Llama-2-7b-hf", 524_288, 6_738_415_616),
    ("Mistral-7B-v0.1", 131_072, 7_241_732_096),
    ("Mistral-7B-v0.3", 131_072, 7_248_023_552),
    ("Mistral-Nemo", 163_840, 12_247_782_400),
    ("Mistral-Small-24B", 163_840, 23_572_403_200),
    ("Mixtral-8x7B", 131_072, 46_702_792_704),
    ("gemma-2-2b", 106_496, 2_614_341_888),
    ("gemma-2-9b", 344_064, 9_241_705_984),
    ("gemma-2-27b", 376_832, 27_227_128_320),
    ("gemma-3-1b", 26_624, 999_885_952),
    ("DeepSeek-V2-Lite", 31_104, 15_706_484_224),
    ("DeepSeek-V3", 70_272, 671_026_419_200),
    ("gpt-oss-20b", 49_152, 20_914_757_184),
    ("gpt-oss-120b", 73_728, 116_829_156_672),
    ("Phi-3-mini-4k-instruct", 393_216, 3_821_079_552),
    ("phi-4", 204_800, 14_659_507_200),
];

#[test]
fn kv_bytes_and_parameters_of_known_models() {
    let mut wrong = Vec::new();
    for (name, kv, parameters) in KNOWN {
        let shape = known_shape(name).unwrap();
        let total = shape.parameters().total();
        let bytes = Deployment::new(shape).kv_bytes_per_token();
        if (bytes, total) != (kv, parameters) {
            wrong.push(format!("{name}: KV {bytes} (due {kv}), parameters {total} (due {parameters})"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_embedded_model_has_a_shape_and_a_distinct_name() {
    let names = known_models();
    let mut keys: Vec<_> = names.iter().map(|name| name.to_ascii_lowercase()).collect();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), names.len());
    for name in &names {
        let shape = known_shape(name).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(shape.parameters().active() <= shape.parameters().total(), "{name}");
        assert_eq!(known_model(name).unwrap().name, *name);
    }
}

#[test]
fn active_parameters_of_mixtures() {
    // As their publishers state them; Qwen's 3.35 B count the embedding, which no token multiplies with.
    for (name, billions, tolerance) in [
        ("Mixtral-8x7B", 12.9, 0.02),
        ("Qwen3-30B-A3B", 3.35 - 0.31, 0.02),
        ("DeepSeek-V3", 36.6, 0.02),
        ("gpt-oss-20b", 3.6, 0.02),
        ("gpt-oss-120b", 5.1, 0.02),
    ] {
        let active = known_shape(name).unwrap().parameters().active() as f64 / 1e9;
        assert!((active / billions - 1.0).abs() < tolerance, "{name}: {active}");
    }
}

#[test]
fn names_are_forgiving() {
    let plain = known_shape("Qwen/Qwen2.5-7B-Instruct").unwrap();
    for name in ["qwen2.5-7b", "QWEN2.5-7B", "qwen2.5_7b", "Qwen2.5-7B-Instruct", "qwen2.5-7b-shape"] {
        assert_eq!(known_shape(name).unwrap(), plain, "{name}");
    }
    let unknown = known_model("Qwen9-1T").unwrap_err().to_string();
    assert!(
        unknown.contains("Qwen9-1T")
            && unknown.contains("config.json")
            && unknown.contains("Qwen/Qwen2.5-7B")
    );
}

#[test]
fn kv_type_and_tensor_parallelism() {
    let of = |name: &str| Deployment::new(known_shape(name).unwrap());
    assert_eq!(of("Llama-3.1-8B").with_kv_dtype(KvDtype::Fp8).kv_bytes_per_token(), 65_536);
    let two = of("Llama-3.1-8B").with_tensor_parallel(2).unwrap();
    assert_eq!((two.kv_bytes_per_token(), two.kv_bytes_per_token_all_gpus()), (65_536, 131_072));
    // Fewer KV heads than GPUs: each GPU keeps one, so the heads are copied.
    let many = of("Llama-3.1-8B").with_tensor_parallel(16).unwrap();
    assert_eq!(many.kv_bytes_per_token(), 2 * 32 * 128 * 2);
    // The latent vector of MLA is whole on every GPU.
    let latent = of("DeepSeek-V3").with_tensor_parallel(8).unwrap();
    assert_eq!(latent.kv_bytes_per_token(), 70_272);
    assert_eq!(latent.with_kv_dtype(KvDtype::Fp8DsMla).kv_bytes_per_token(), 656 * 61);
    assert_eq!(
        of("Llama-3.1-8B").with_kv_dtype("int8_per_token_head".parse().unwrap()).kv_bytes_per_token(),
        { 32 * (2 * 8 * 128 + 2 * 8 * 4) }
    );
    assert_eq!(of("Llama-3.1-8B").with_kv_dtype(KvDtype::Nvfp4).kv_bytes_per_token(), 32 * 2 * 8 * (64 + 8));
    let uneven = of("Qwen2.5-7B").with_tensor_parallel(8).unwrap_err().to_string();
    assert!(uneven.contains("--tensor-parallel-size 8") && uneven.contains("28"));
    assert!("fp3".parse::<KvDtype>().unwrap_err().to_string().contains("--kv-cache-dtype fp3"));
}

#[test]
fn sliding_layers_stop_growing_at_their_window() {
    // Gemma 2: 13 of 26 layers slide; each layer keeps 4096 B a token.
    let gemma = Deployment::new(known_shape("gemma-2-2b").unwrap());
    assert_eq!(gemma.kv_bytes_of_sequence(1000), 1000 * 106_496);
    assert_eq!(gemma.kv_bytes_of_sequence(8192), 4096 * (13 * 8192 + 13 * 4096));
    // Gemma 3: every sixth layer sees everything.
    let window = known_shape("gemma-3-27b").unwrap().window.unwrap();
    assert_eq!((window.tokens, window.layers), (1024, 52));
    let window = known_shape("gpt-oss-20b").unwrap().window.unwrap();
    assert_eq!((window.tokens, window.layers), (128, 12));
    let window = known_shape("Mistral-7B-v0.1").unwrap().window.unwrap();
    assert_eq!((window.tokens, window.layers), (4096, 32));
    assert_eq!(known_shape("Qwen2.5-7B").unwrap().window, None, "use_sliding_window is false");
    let sliding = with_overrides(
        &known_model("Qwen2.5-7B").unwrap().config,
        &json!({"use_sliding_window": true, "max_window_layers": 20}),
    );
    assert_eq!(ModelShape::from_config(&sliding).unwrap().window.unwrap().layers, 8);
}

#[test]
fn gemma_3_leaves_fields_to_its_class() {
    let shape = known_shape("gemma-3-4b-it").unwrap();
    assert_eq!(shape.attention, Attention::Grouped { heads: 8, kv_heads: 4, head_dim: 256 });
    assert_eq!((shape.vocab, shape.tied_embeddings), (262_208, true));
    assert_eq!(Deployment::new(shape).kv_bytes_per_token(), 2 * 34 * 4 * 256 * 2);
}

#[test]
fn quantised_weights() {
    let gigabytes = |deployment: &Deployment| deployment.weight_bytes_per_gpu() as f64 / 1e9;
    let plain = Deployment::new(known_shape("Qwen2.5-7B").unwrap());
    assert_eq!(plain.weight_bytes_per_gpu(), 2 * 7_615_616_512);
    // The published files of the AWQ variant take 5.57 GB.
    let awq = Deployment::new(known_shape("Qwen2.5-7B-Instruct-AWQ").unwrap());
    assert!((gigabytes(&awq) - 5.57).abs() < 0.06, "{}", gigabytes(&awq));
    // FP8 files of DeepSeek-V3's main model: about 671 GB and a little for what stays at 16 bits.
    let deepseek = Deployment::new(known_shape("DeepSeek-V3").unwrap());
    assert!((gigabytes(&deepseek) - 673.0).abs() < 3.0, "{}", gigabytes(&deepseek));
    // The files of gpt-oss-20b take 13.76 GB.
    let oss = Deployment::new(known_shape("gpt-oss-20b").unwrap());
    assert!((gigabytes(&oss) - 13.76).abs() < 0.1, "{}", gigabytes(&oss));
    let config = json!({"quantization_config": {"quant_method": "compressed-tensors", "config_groups": {"group_0": {
        "weights": {"num_bits": 8, "type": "float"}, "input_activations": {"num_bits": 8}}}}});
    let shape =
        ModelShape::from_config(&with_overrides(&known_model("Llama-3.1-8B").unwrap().config, &config))
            .unwrap();
    let quantization = shape.quantization.unwrap();
    assert!(quantization.eight_bit_arithmetic && quantization.bits == 8.0);
}

#[test]
fn missing_fields_are_named_together_with_the_remedy() {
    let error =
        ModelShape::from_config(&json!({"model_type": "mystery", "num_attention_heads": 8})).unwrap_err();
    let CatalogError::MissingFields { fields, .. } = &error else { panic!("{error}") };
    assert_eq!(fields.len(), 4, "{fields:?}");
    let text = error.to_string();
    for part in
        ["mystery", "num_hidden_layers", "hidden_size", "vocab_size", "intermediate_size", "--hf-overrides"]
    {
        assert!(text.contains(part), "{text} lacks {part}");
    }
}

#[test]
fn odd_files_are_refused_in_words() {
    let llama = known_model("Llama-3.1-8B").unwrap().config;
    for (overrides, word) in [
        (json!({"num_hidden_layers": "32"}), "whole number"),
        (json!({"num_hidden_layers": 0}), "num_hidden_layers is 0"),
        (json!({"num_hidden_layers": -3}), "whole number"),
        (json!({"num_key_value_heads": 7}), "7 KV heads"),
        (json!({"num_key_value_heads": 0}), "num_key_value_heads is 0"),
        (json!({"num_attention_heads": 1_000_000_007}), "KV heads"),
        (json!({"hidden_size": 1u64 << 60}), "hidden_size"),
        (json!({"hidden_size": 1 << 29, "intermediate_size": 1 << 29}), "no model is that large"),
        (json!({"layer_types": ["mamba"]}), "mamba"),
        (json!({"quantization_config": {"quant_method": "runes"}}), "runes"),
        (json!({"kv_lora_rank": 512}), "qk_nope_head_dim"),
    ] {
        let error = ModelShape::from_config(&with_overrides(&llama, &overrides)).unwrap_err().to_string();
        assert!(error.contains(word), "{overrides}: {error}");
    }
    assert!(ModelShape::from_config(&json!([1, 2])).is_err());
}

#[test]
fn fingerprints_tell_models_apart() {
    let names = known_models();
    let mut prints: Vec<_> = names.iter().map(|name| known_shape(name).unwrap().fingerprint()).collect();
    let all = prints.len();
    prints.sort();
    prints.dedup();
    // Llama 3 and 3.1 share their shape (8B and 70B), Mistral 0.2 and 3 differ in vocabulary.
    assert_eq!(prints.len(), all - 2);
}

#[test]
fn tensor_parallel_sizes_that_vllm_takes() {
    let sizes = |name: &str| known_shape(name).unwrap().tensor_parallel_sizes();
    assert_eq!(sizes("Llama-3.1-70B"), [1, 2, 4, 8, 16, 32, 64]);
    // 28 query heads over 4 KV heads: 7 and 14 divide the former and fit the latter in no way.
    assert_eq!(sizes("Qwen2.5-7B"), [1, 2, 4]);
    // 40 over 10, so that four GPUs are refused and five are taken.
    assert_eq!(sizes("phi-4"), [1, 2, 5, 10, 20, 40]);
    assert_eq!(sizes("gemma-3-1b"), [1, 2, 4]);
    let refusal = |name: &str, size| {
        Deployment::new(known_shape(name).unwrap()).with_tensor_parallel(size).unwrap_err().to_string()
    };
    let text = refusal("phi-4", 4);
    assert!(text.contains("10 KV heads") && text.contains("it takes 1, 2, 5, 10, 20, 40"), "{text}");
    assert!(refusal("Qwen2.5-7B", 28).contains("width 18944"));
}

#[test]
fn a_gpus_part_of_quantised_weights_holds_whole_groups() {
    // Qwen2.5-72B in groups of 128: 29568 / 8 = 3696 is no multiple, as whoever tried eight GPUs found.
    let config = known_model("Qwen2.5-72B").unwrap().config;
    let of = |quantization: serde_json::Value| {
        ModelShape::from_config(&with_overrides(&config, &json!({ "quantization_config": quantization })))
            .unwrap()
            .tensor_parallel_sizes()
    };
    assert_eq!(of(json!({"quant_method": "fp8"})), [1, 2, 4, 8, 16, 32, 64]);
    assert_eq!(of(json!({"quant_method": "gptq", "bits": 4, "group_size": 128})), [1]);
    assert_eq!(of(json!({"quant_method": "gptq", "bits": 4, "group_size": 32})), [1, 2, 4]);
    assert_eq!(of(json!({"quant_method": "gptq", "bits": 4, "group_size": -1})), [1, 2, 4, 8, 16, 32, 64]);
}
