#!/usr/bin/env python3
"""Makes a tiny Qwen2 without a model hub: a config and a tokenizer, to be served with --load-format dummy.

usage: make-tiny-qwen2.py DIR      (needs the package tokenizers)

4 layers of hidden size 512 (11 M weights): with a much smaller model the steps are so short that events reach the
client in clumps; a larger one takes minutes on a CPU without wide vectors. The tokenizer is a byte-level BPE over made-up words, so that random token ids decode to text
that encodes to nearly as many tokens, which `vllm bench serve --dataset-name random` relies on.
"""
import itertools
import json
import pathlib
import string
import sys

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

VOCABULARY = 2048
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
BEGIN, END = VOCABULARY - 3, VOCABULARY - 1


def vocabulary():
    """The byte alphabet, then words with a leading space; each prefix of a word is a token too."""
    tokens = {c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    merges = []
    letters = (w for n in itertools.count(1) for w in itertools.product(string.ascii_lowercase, repeat=n))
    while len(tokens) < VOCABULARY - len(SPECIAL):
        word = "\u0120"
        for letter in next(letters):
            if word + letter not in tokens:
                merges.append((word, letter))
                tokens[word + letter] = len(tokens)
            word += letter
    return tokens, merges


def main():
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    write = lambda name, value: (out / name).write_text(json.dumps(value, indent=1))
    write("config.json", {
        "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 512, "intermediate_size": 1024,
        "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 64,
        "vocab_size": VOCABULARY, "max_position_embeddings": 16384, "hidden_act": "silu", "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0, "initializer_range": 0.02, "use_cache": True, "tie_word_embeddings": True,
        "attention_dropout": 0.0, "use_sliding_window": False, "bos_token_id": BEGIN, "eos_token_id": END,
        "torch_dtype": "bfloat16"})
    write("generation_config.json", {"bos_token_id": BEGIN, "eos_token_id": END})
    tokens, merges = vocabulary()
    tokenizer = Tokenizer(models.BPE(vocab=tokens, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(s, special=True, normalized=False) for s in SPECIAL])
    assert tokenizer.get_vocab_size() == VOCABULARY
    tokenizer.save(str(out / "tokenizer.json"))
    write("tokenizer_config.json", {
        "tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 16384, "bos_token": None,
        "eos_token": SPECIAL[2], "pad_token": SPECIAL[0], "clean_up_tokenization_spaces": False})


main()
