"""What a checkpoint's configuration says of its quantization."""

from dataclasses import dataclass

from ..layer import MAX_CODEBOOKS, MAX_INDEX_BITS, VECTOR_LENGTHS

__all__ = ["AQLM", "OWN", "Variant", "quantization_config", "read_quantization"]

#: quant_method of AQLM, and of folders whose layers AQLM's configuration cannot describe.
AQLM, OWN = "aqlm", "eva_vq"
_KEYS = {"nbits_per_codebook": (range(1, MAX_INDEX_BITS + 1), f"an integer from 1 to {MAX_INDEX_BITS}"),
         "num_codebooks": (range(1, MAX_CODEBOOKS + 1), f"an integer from 1 to {MAX_CODEBOOKS}"),
         "in_group_size": (VECTOR_LENGTHS, f"one of {', '.join(map(str, VECTOR_LENGTHS))}"),
         "out_group_size": ((1,), "1: with more, an output codebook value would be partial sums of several outputs")}


@dataclass(frozen=True)
class Variant:
    """C codebooks of 2^n entries of d values, the same in every layer."""

    codebooks: int
    index_bits: int
    d: int

    def __str__(self):
        return f"{self.codebooks}x{self.index_bits} g{self.d}"


def read_quantization(problems, config):
    """``(quant_method, Variant or None)`` of a ``config.json``; notes what is missing or wrong.

    AQLM's configuration is ``quantization_config`` with quant_method "aqlm", or the root key ``aqlm`` of early
    checkpoints. The method is None if the configuration has neither.
    """
    found = config.get("quantization_config")
    where = "quantization_config"
    if found is None and "aqlm" in config:
        found, where = config["aqlm"], "aqlm"
    if found is None:
        problems.check(False, "config.json: has neither quantization_config nor aqlm: the checkpoint is not quantized "
                       "(eva-hw quantize makes layers of dense weights)")
        return None, None
    if not problems.check(isinstance(found, dict), f"config.json: {where} must be an object"):
        return None, None
    method = AQLM if where == "aqlm" else found.get("quant_method", AQLM if "num_codebooks" in found else None)
    if method == OWN:
        return OWN, None
    if not problems.check(method == AQLM, f"config.json: quant_method {method!r} must be {AQLM!r} or {OWN!r}"):
        return None, None
    sound = True
    for key, (legal, words) in _KEYS.items():
        if key not in found:
            sound = problems.check(False, f"config.json: {where} lacks {key}, which must be {words}")
        elif type(found[key]) is not int or found[key] not in legal:
            sound = problems.check(False, f"config.json: {where}.{key} = {found[key]!r} must be {words}")
    if not sound:
        return AQLM, None
    return AQLM, Variant(found["num_codebooks"], found["nbits_per_codebook"], found["in_group_size"])


def quantization_config(variants, dense):
    """The ``quantization_config`` of layers of these variants.

    Parameters
    ----------
    variants : set of Variant or None
        None stands for a layer with grouped codebooks.
    dense : iterable of str
        Names of the tensors that are not quantized.
    """
    kept = sorted(name for name in dense if name.endswith(".weight"))
    if len(variants) != 1 or None in variants:
        return {"quant_method": OWN, "linear_weights_not_to_quantize": kept}
    (variant,) = variants
    return {"quant_method": AQLM, "nbits_per_codebook": variant.index_bits, "num_codebooks": variant.codebooks,
            "out_group_size": 1, "in_group_size": variant.d, "linear_weights_not_to_quantize": kept}
