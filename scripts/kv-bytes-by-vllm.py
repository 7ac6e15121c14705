#!/usr/bin/env python3
"""What vLLM computes as KV bytes per token: bytes of a block over all layers and GPUs, divided by its tokens.

usage: kv-bytes-by-vllm.py shapes.json      (in an environment with vllm 0.27.1; writes the numbers into the file)

Heads, head sizes, layers and whether attention is latent come from vLLM's own ModelConfig; page sizes from its cache
specifications. Weights' quantisation is left out: a CPU build refuses most formats, and none of these changes the cache.
"""
import json
import pathlib
import sys
import tempfile

import torch
from vllm.config import ModelConfig, ParallelConfig
from vllm.v1.kv_cache_interface import FullAttentionSpec, MLAAttentionSpec

BLOCK = 16
TEXT_ALONE = {
    "Gemma3ForConditionalGeneration": "Gemma3ForCausalLM",
    "Qwen3VLMoeForConditionalGeneration": "Qwen3MoeForCausalLM",
}


def bytes_per_token(shape):
    config = {k: v for k, v in shape["config"].items() if k != "quantization_config"}
    # Inspecting the class of a model with a vision tower needs packages that a CPU environment need not have.
    config["architectures"] = [TEXT_ALONE.get(name, name) for name in config["architectures"]]
    gpus = shape.get("tensor_parallel_size", 1)
    with tempfile.TemporaryDirectory() as model:
        (pathlib.Path(model) / "config.json").write_text(json.dumps(config))
        described = ModelConfig(model=model, skip_tokenizer_init=True, max_model_len=1024)
    parallel = ParallelConfig(distributed_executor_backend="external_launcher", pipeline_parallel_size=1)
    parallel.tensor_parallel_size = gpus
    kind = MLAAttentionSpec if described.use_mla else FullAttentionSpec
    dtype = {"auto": described.dtype, "fp8": torch.uint8}[shape.get("kv_cache_dtype", "auto")]
    spec = kind(block_size=BLOCK, num_kv_heads=described.get_num_kv_heads(parallel),
                head_size=described.get_head_size(), dtype=dtype)
    return spec.page_size_bytes * described.get_num_layers(parallel) * gpus // BLOCK


def main():
    path = pathlib.Path(sys.argv[1])
    table = json.loads(path.read_text())
    for shape in table["shapes"]:
        shape["kv_bytes_per_token"] = bytes_per_token(shape)
        print(f'{shape["name"]}: {shape["kv_bytes_per_token"]}')
    lines = ",\n".join("    " + json.dumps(shape) for shape in table["shapes"])
    path.write_text('{\n  "origin": ' + json.dumps(table["origin"]) + ',\n  "shapes": [\n' + lines + "\n  ]\n}\n")


main()
