"""What a configuration can run: every way in which a layer or a job may not fit, found before the hardware does."""

from ..abi.image import VqPlan
from ..config import GROUP_ROWS
from ..errors import Problems

__all__ = ["MAX_JOB_CODEBOOKS", "MAX_OUTPUTS", "MAX_ROW_BEATS", "check_layer", "check_tokens", "group_outputs", "plan_of",
           "plans_of"]

#: Limits of the hardware's counters.
MAX_OUTPUTS = (1 << 22) - 1
MAX_ROW_BEATS = (1 << 24) - 1
MAX_JOB_CODEBOOKS = (1 << 12) - 1


def group_outputs(layer):
    """First output and outputs of every output group of ``layer``, one job each."""
    size = layer.outputs_per_group
    return [(first, min(size, layer.outputs - first)) for first in range(0, layer.outputs, size)]


def plans_of(layer, config, out_fp32=False):
    """The :class:`~eva_hw.abi.image.VqPlan` of every output group of ``layer`` on ``config``, in order."""
    blocks = None if layer.column_blocks == 1 else layer.vectors_per_block
    return [VqPlan(config, vectors=layer.vectors, outputs=count, codebooks=layer.codebook_count, d=layer.d,
                   index_bits=layer.index_bits, out_fp32=out_fp32, block_vectors=blocks)
            for _, count in group_outputs(layer)]


def plan_of(layer, config, out_fp32=False):
    """The plan of the only output group of ``layer``, or of the first."""
    return plans_of(layer, config, out_fp32)[0]


def check_layer(layer, config):
    """Raises InputError listing everything about ``layer`` that an accelerator of ``config`` cannot do."""
    problems = Problems(f"{layer!r} on configuration {config.name!r}")
    plan = plan_of(layer, config)
    padded = plan.vectors * plan.vector_words * GROUP_ROWS
    pad_note = "" if padded == layer.inputs else f" (stored as {padded}, since d = {layer.d} is padded to {GROUP_ROWS})"
    fits = problems.check(plan.d in config.vector_lengths,
                          f"d = {plan.d} must be one of {', '.join(map(str, config.vector_lengths))} "
                          f"(max_d = {config.max_d})")
    problems.check(padded <= config.max_k, f"inputs = {layer.inputs}{pad_note} must be at most max_k = {config.max_k}")
    if fits and problems.check(plan.job_index_bits >= 1,
                               f"a codebook of two entries of d = {plan.d} takes {2 * plan.vector_words} words of "
                               f"{GROUP_ROWS} values, which must be at most the {config.ring_words} of a ring in "
                               f"max_codebooks = {config.max_codebooks}"):
        _check_counts(problems, plan)
    problems.raise_if_any()


def _check_counts(problems, plan):
    """Notes what overflows the hardware's counters."""
    cut = "" if plan.slices == 1 else f" of {plan.slices} slices of {plan.slice_entries} entries"
    problems.check(plan.job_codebooks <= MAX_JOB_CODEBOOKS,
                   f"{plan.codebooks} codebooks{cut} are {plan.job_codebooks} codebooks, which must be at most "
                   f"{MAX_JOB_CODEBOOKS}")
    problems.check(plan.codebook_beats <= MAX_ROW_BEATS,
                   f"the codebooks take {plan.codebook_beats} beats, which must be at most {MAX_ROW_BEATS}")
    if problems.check(1 <= plan.outputs <= MAX_OUTPUTS, f"outputs = {plan.outputs} must be from 1 to {MAX_OUTPUTS}"):
        problems.check(plan.row_beats <= MAX_ROW_BEATS,
                       f"the indices{cut and f' of codebooks{cut}'} take {plan.row_beats} beats, which must be at most "
                       f"{MAX_ROW_BEATS}")


def check_tokens(tokens, config):
    """Raises InputError unless one job of ``config`` can have ``tokens`` rows of x."""
    problems = Problems(f"job on configuration {config.name!r}")
    problems.check(1 <= tokens <= config.batch_lanes,
                   f"tokens = {tokens} must be from 1 to batch_lanes = {config.batch_lanes}")
    problems.raise_if_any()
