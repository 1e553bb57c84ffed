"""What a configuration can run: every way in which a layer or a job may not fit, found before the hardware does."""

from ..abi.image import VqPlan
from ..config import GROUP_ROWS
from ..errors import Problems

__all__ = ["MAX_OUTPUTS", "MAX_ROW_BEATS", "check_layer", "check_tokens", "plan_of"]

#: Limits of the hardware's counters.
MAX_OUTPUTS = (1 << 22) - 1
MAX_ROW_BEATS = (1 << 24) - 1


def plan_of(layer, config, out_fp32=False):
    """The :class:`~eva_hw.abi.image.VqPlan` of ``layer`` on ``config``."""
    return VqPlan(config, vectors=layer.vectors, outputs=layer.outputs, codebooks=layer.codebook_count, d=layer.d,
                  index_bits=layer.index_bits, out_fp32=out_fp32)


def check_layer(layer, config):
    """Raises InputError listing everything about ``layer`` that an accelerator of ``config`` cannot do."""
    problems = Problems(f"{layer!r} on configuration {config.name!r}")
    plan = plan_of(layer, config)
    padded = plan.vectors * plan.vector_words * GROUP_ROWS
    pad_note = "" if padded == layer.inputs else f" (stored as {padded}, since d = {layer.d} is padded to {GROUP_ROWS})"
    problems.check(plan.d in config.vector_lengths,
                   f"d = {plan.d} must be one of {', '.join(map(str, config.vector_lengths))} "
                   f"(an array of {config.rows} rows)")
    problems.check(padded <= config.max_k, f"inputs = {layer.inputs}{pad_note} must be at most max_k = {config.max_k}")
    problems.check(1 <= plan.index_bits <= config.index_bits,
                   f"index_bits = {plan.index_bits} must be from 1 to {config.index_bits}")
    words = (plan.codebooks << plan.index_bits) * plan.vector_words
    problems.check(words <= config.codebook_words,
                   f"{plan.codebooks} codebooks of {1 << plan.index_bits} entries of d = {plan.d} take {words} words "
                   f"of {GROUP_ROWS} values, which must be at most the {config.codebook_words} of "
                   f"max_codebooks = {config.max_codebooks}")
    if problems.check(1 <= plan.outputs <= MAX_OUTPUTS, f"outputs = {plan.outputs} must be from 1 to {MAX_OUTPUTS}"):
        problems.check(plan.row_beats <= MAX_ROW_BEATS,
                       f"the indices take {plan.row_beats} beats, which must be at most {MAX_ROW_BEATS}")
    problems.raise_if_any()


def check_tokens(tokens, config):
    """Raises InputError unless one job of ``config`` can have ``tokens`` rows of x."""
    problems = Problems(f"job on configuration {config.name!r}")
    problems.check(1 <= tokens <= config.batch_lanes,
                   f"tokens = {tokens} must be from 1 to batch_lanes = {config.batch_lanes}")
    problems.raise_if_any()
