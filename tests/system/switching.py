"""Queues in which VQ and INT8 GEMM jobs alternate, so that every job is bound by the array and switches show."""

from eva_hw.presets import preset

from tests.gemm_cases import gemm_job

from eva_hw.runtime import Job

from .support import random_layer, random_x

__all__ = ["alternating"]


def alternating(name, pairs=3):
    """VQ jobs and GEMMs in turn, ``2 * pairs - 1`` of them: few outputs, and many vectors to one small codebook."""
    config = preset(name)
    inputs = 16 * 8 * config.vectors
    layer = random_layer(1, 8, inputs, codebooks=1, index_bits=6)
    jobs = []
    for i in range(pairs):
        gemm = gemm_job(i, config.gemm_rows + 8, 4 * config.rows, config.cols, "fp16")
        jobs += [Job(layer, random_x(i, inputs)), gemm]
    return jobs[:-1]
