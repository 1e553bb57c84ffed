"""Checkpoints of other quantization methods: recognised, so that the refusal can say why."""

__all__ = ["foreign_method", "refusal"]

_SCALAR = "its weights are integers with scales, not indices into codebooks"
_FP8 = "its weights are FP8 numbers, not indices into codebooks"
#: quant_method -> why the accelerator cannot run it.
REASONS = {
    "vptq": "VPTQ groups weights along the outputs: an entry holds the weights of one input for several outputs, so "
            "the dot product of input and entry that EVA looks up (the output codebook) does not exist",
    "quip": "QuIP# multiplies inputs and outputs by Hadamard matrices, and its E8 codebook has signs of its own for "
            "each index",
    "qtip": "QTIP decodes weights from a trellis, each depending on its neighbours: there is no codebook to multiply "
            "with",
    "gptq": _SCALAR,
    "awq": _SCALAR,
    "bitsandbytes": _SCALAR,
    "hqq": _SCALAR,
    "quanto": _SCALAR,
    "eetq": _SCALAR,
    "torchao": _SCALAR,
    "compressed-tensors": _SCALAR,
    "fbgemm_fp8": _FP8,
    "fp8": _FP8,
    "mxfp4": "its weights are 4-bit numbers with shared exponents, not indices into codebooks",
    "higgs": "HIGGS rotates weights by Hadamard matrices before it looks them up in a grid",
    "spqr": "SpQR keeps integers with scales and a sparse matrix of outliers, not indices into codebooks",
    "bitnet": "its weights are -1, 0 or 1, not indices into codebooks",
}
#: End of a tensor's name -> the method that has such tensors.
_SIGNS = (
    (".centroids.weight", "vptq"), (".res_centroids.weight", "vptq"), (".outlier_centroids.weight", "vptq"),
    (".Qidxs", "quip"), (".Qidxs_0", "quip"), (".trellis", "qtip"),
    (".qweight", "gptq"), (".SCB", "bitsandbytes"), (".weight.absmax", "bitsandbytes"),
    (".weight.quant_map", "bitsandbytes"), (".W_q", "hqq"), (".weight_packed", "compressed-tensors"),
)
#: Other ways in which configurations write a method's name.
_ALIASES = {"bitsandbytes_4bit": "bitsandbytes", "bitsandbytes_8bit": "bitsandbytes", "quip#": "quip",
            "quip-sharp": "quip", "auto-round": "gptq", "intel/auto-round": "gptq", "gptqmodel": "gptq",
            "compressed_tensors": "compressed-tensors"}


def foreign_method(config, tensors):
    """The method's name if ``config`` (dict or None) or the tensors' names are another method's, else None."""
    config = config or {}
    stated = config.get("quantization_config")
    method = str(stated.get("quant_method", "")).lower() if isinstance(stated, dict) else ""
    method = _ALIASES.get(method, method)
    if method in REASONS:
        return method
    found = next((sign for ending, sign in _SIGNS if any(name.endswith(ending) for name in tensors)), None)
    if found is None and "quip_params" in config:
        return "quip"
    return found


def refusal(method):
    """The line that says why checkpoints of ``method`` are refused."""
    return f"a checkpoint of {method!r} cannot be imported: {REASONS[method]}"
