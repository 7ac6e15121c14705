#!/usr/bin/env python3
"""Makes a tiny llama with random weights as a GGUF file.     usage: make-tiny-gguf.py OUT.gguf

Needs the packages gguf and numpy. Two layers of 128: a token takes a tenth of a millisecond, so that the server,
not the arithmetic, is what is tested. The vocabulary is SentencePiece's kind: bytes, letters, pairs of letters.
"""
import itertools
import string
import sys

import gguf
import numpy

HIDDEN, LAYERS, HEADS, KV_HEADS, FEED_FORWARD, CONTEXT, VOCABULARY = 128, 2, 4, 2, 256, 4096, 1024
SPACE = "\u2581"


def vocabulary():
    """Token texts and their types."""
    kind = gguf.TokenType
    tokens = [("<unk>", kind.UNKNOWN), ("<s>", kind.CONTROL), ("</s>", kind.CONTROL)]
    tokens += [(f"<0x{byte:02X}>", kind.BYTE) for byte in range(256)]
    letters = string.ascii_lowercase
    pairs = ("".join(pair) for pair in itertools.product(letters, repeat=2))
    words = itertools.chain([SPACE], letters, (SPACE + letter for letter in letters), (SPACE + pair for pair in pairs))
    tokens += [(word, kind.NORMAL) for word in itertools.islice(words, VOCABULARY - len(tokens))]
    tokens += [(f"<unused_{n}>", kind.UNUSED) for n in range(VOCABULARY - len(tokens))]
    return tokens


def tensors(random):
    """Names and values."""
    head = HIDDEN // HEADS
    draw = lambda *shape: (0.05 * random.standard_normal(shape)).astype(numpy.float32)
    ones = lambda: numpy.ones(HIDDEN, numpy.float32)
    yield "token_embd.weight", draw(VOCABULARY, HIDDEN)
    yield "output_norm.weight", ones()
    yield "output.weight", draw(VOCABULARY, HIDDEN)
    for layer in range(LAYERS):
        for name, value in {
            "attn_norm": ones(), "ffn_norm": ones(),
            "attn_q": draw(HIDDEN, HIDDEN), "attn_output": draw(HIDDEN, HIDDEN),
            "attn_k": draw(KV_HEADS * head, HIDDEN), "attn_v": draw(KV_HEADS * head, HIDDEN),
            "ffn_gate": draw(FEED_FORWARD, HIDDEN), "ffn_up": draw(FEED_FORWARD, HIDDEN),
            "ffn_down": draw(HIDDEN, FEED_FORWARD),
        }.items():
            yield f"blk.{layer}.{name}.weight", value


def main():
    out = gguf.GGUFWriter(sys.argv[1], "llama")
    out.add_name("tiny")
    out.add_context_length(CONTEXT)
    out.add_embedding_length(HIDDEN)
    out.add_block_count(LAYERS)
    out.add_feed_forward_length(FEED_FORWARD)
    out.add_head_count(HEADS)
    out.add_head_count_kv(KV_HEADS)
    out.add_rope_dimension_count(HIDDEN // HEADS)
    out.add_layer_norm_rms_eps(1e-5)
    out.add_vocab_size(VOCABULARY)
    out.add_file_type(gguf.LlamaFileType.ALL_F32)
    tokens = vocabulary()
    out.add_tokenizer_model("llama")
    out.add_token_list([text.encode() for text, _ in tokens])
    # SentencePiece joins the pair with the best score first; a score falls with the token's number.
    out.add_token_scores([-float(max(0, number - 259)) for number in range(VOCABULARY)])
    out.add_token_types([kind for _, kind in tokens])
    out.add_bos_token_id(1)
    out.add_eos_token_id(2)
    out.add_unk_token_id(0)
    out.add_add_bos_token(True)
    out.add_chat_template("{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant:")
    for name, value in tensors(numpy.random.default_rng(0)):
        out.add_tensor(name, value)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


main()
