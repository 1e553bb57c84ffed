"""AQLM checkpoints written byte by byte, and the weights they stand for, without ``eva_hw``, torch or safetensors."""

import json
import struct

import numpy as np

#: safetensors types as NumPy stores them; BF16 is the upper half of an FP32.
TYPES = {"I8": "<i1", "I16": "<i2", "I32": "<i4", "I64": "<i8", "F16": "<f2", "BF16": "<u2", "F32": "<f4", "F64": "<f8"}
#: (C, n, d) of the AQLM variants that exist.
VARIANTS = ((1, 8, 8), (2, 8, 8), (3, 8, 8), (4, 8, 8), (8, 8, 32), (2, 12, 8), (1, 15, 8), (1, 16, 8), (1, 16, 16),
            (2, 16, 8))


def write_safetensors(path, tensors):
    """A safetensors file of ``{name: (type, array of its stored values)}``."""
    header, data = {}, b""
    for name, (kind, values) in tensors.items():
        values = np.ascontiguousarray(values, TYPES[kind])
        header[name] = {"dtype": kind, "shape": list(values.shape),
                        "data_offsets": [len(data), len(data) + values.nbytes]}
        data += values.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def stored_codes(index, n):
    """n-bit two's complement of indices: those from 2^(n-1) on count from -2^(n-1)."""
    return np.array([i - 2 ** n if i >= 2 ** (n - 1) else i for i in index.reshape(-1).tolist()]).reshape(index.shape)


def layer_tensors(rng, name, outputs, vectors, variant, *, codes="I16", floats="F16", bias=False):
    """``(stored tensors, weights float64 [N, K], bias or None)`` of one random module.

    Values have few bits, so that they are the same in every floating-point type.
    """
    count, n, d = variant
    index = rng.integers(0, 2 ** n, (outputs, vectors, count))
    index[0, 0], index[-1, -1] = 2 ** n - 1, 2 ** (n - 1)
    books = rng.integers(-127, 128, (count, 2 ** n, 1, d)) / 64.0
    scales = rng.integers(1, 128, (outputs, 1, 1, 1)) / 4096.0
    added = rng.integers(-127, 128, outputs) / 32.0 if bias else None
    weights = np.zeros((outputs, vectors * d))
    for o in range(outputs):
        for v in range(vectors):
            for i in range(d):
                weights[o, v * d + i] = scales[o, 0, 0, 0] * sum(books[c, index[o, v, c], 0, i] for c in range(count))
    made = {f"{name}.codes": (codes, stored_codes(index, n)), f"{name}.codebooks": (floats, encode(books, floats)),
            f"{name}.scales": (floats, encode(scales, floats))}
    if bias:
        made[f"{name}.bias"] = (floats, encode(added, floats))
    return made, weights, added


def encode(values, kind):
    """Numbers as they are stored; BF16 by cutting off the lower half of an FP32."""
    if kind != "BF16":
        return values
    return np.ascontiguousarray(values, "<f4").view("<u4") >> 16


def config(variant, *, root=False, **changes):
    """A ``config.json``: of today, or with the root key of early checkpoints."""
    count, n, d = variant
    stated = {"nbits_per_codebook": n, "num_codebooks": count, "out_group_size": 1, "in_group_size": d} | changes
    if root:
        return {"model_type": "llama_aqlm", "aqlm": stated}
    # The list also names norms, biases and tensors that do not exist, as real checkpoints' lists do.
    return {"model_type": "llama", "quantization_config": {
        "quant_method": "aqlm", "linear_weights_not_to_quantize": ["model.norm.weight", "nowhere.weight"], **stated}}


def write_folder(folder, tensors, settings, shards=1):
    """A checkpoint folder; its tensors are dealt out to ``shards`` files."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(settings))
    if shards == 1:
        write_safetensors(folder / "model.safetensors", tensors)
        return
    where = {}
    for shard in range(shards):
        name = f"model-{shard + 1:05}-of-{shards:05}.safetensors"
        part = dict(list(tensors.items())[shard::shards])
        write_safetensors(folder / name, part)
        where |= dict.fromkeys(part, name)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": where}))
