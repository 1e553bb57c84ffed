"""A tiny random LLaMA as a checkpoint folder, with a tokenizer of bytes."""

import json
from dataclasses import replace

import numpy as np
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from eva_hw.formats.aqlm import write_checkpoint
from eva_hw.layer import VqLayer

MARKS = ("<|im_start|>", "<|im_end|>")
CONFIG = {
    "model_type": "llama", "hidden_act": "silu", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "rms_norm_eps": 1e-5, "rope_theta": 100.0,
    "vocab_size": 256 + len(MARKS), "max_position_embeddings": 64, "tie_word_embeddings": True,
}


def make_tokenizer(marks=MARKS):
    """Every byte a token, and the marks of a chat."""
    vocabulary = {letter: i for i, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    made = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(mark, special=True, normalized=False) for mark in marks])
    return made


def write_folder(folder, *, seed=1, bias=False, head=None, without=(), dense=(), shared=False, **config):
    """Writes the model; ``head``: None (tied), "dense" or "vq"; ``dense``: linear layers left unquantized.

    ``shared``: q, k and v, gate and up have the same codebooks.
    """
    rng, config = np.random.default_rng(seed), {**CONFIG, **config, "tie_word_embeddings": head is None}
    width, ffn, vocabulary = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    kv = config["num_key_value_heads"] * config["head_dim"]
    shapes = {"self_attn.q_proj": (width, width), "self_attn.k_proj": (kv, width), "self_attn.v_proj": (kv, width),
              "self_attn.o_proj": (width, width), "mlp.gate_proj": (ffn, width), "mlp.up_proj": (ffn, width),
              "mlp.down_proj": (width, ffn)}
    tensors = {"model.embed_tokens.weight": rng.standard_normal((vocabulary, width)).astype(np.float16),
               "model.norm.weight": rng.uniform(0.5, 1.5, width).astype(np.float32)}
    layers = {}
    for block in range(config["num_hidden_layers"]):
        prefix = f"model.layers.{block}"
        for name in ("input_layernorm", "post_attention_layernorm"):
            tensors[f"{prefix}.{name}.weight"] = rng.uniform(0.5, 1.5, width).astype(np.float16)
        for name, (outputs, inputs) in shapes.items():
            layer = VqLayer.random(rng, outputs=outputs, inputs=inputs, codebooks=2, index_bits=5, bias=bias)
            if shared and name.endswith(("k_proj", "v_proj", "up_proj")):
                layer = replace(layer, codebooks=previous.codebooks)
            previous = layer
            if name in dense:
                tensors[f"{prefix}.{name}.weight"] = layer.dequantize().astype(np.float32)
                if bias:
                    tensors[f"{prefix}.{name}.bias"] = layer.bias
            else:
                layers[f"{prefix}.{name}"] = layer
    if head == "dense":
        tensors["lm_head.weight"] = rng.standard_normal((vocabulary, width)).astype(np.float32)
    elif head == "vq":
        layers["lm_head"] = VqLayer.random(rng, outputs=vocabulary, inputs=width, codebooks=2, index_bits=5)
    write_checkpoint(folder, [(n, v) for n, v in layers.items() if n not in without],
                     [(n, v) for n, v in tensors.items() if n not in without], config=config)
    make_tokenizer().save(str(folder / "tokenizer.json"))
    return folder


def change_config(folder, **values):
    """Changes fields of ``config.json``; None removes one."""
    path = folder / "config.json"
    config = {**json.loads(path.read_text()), **values}
    path.write_text(json.dumps({k: v for k, v in config.items() if v is not None}))
