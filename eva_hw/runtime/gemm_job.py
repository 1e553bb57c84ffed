"""INT8 GEMMs as jobs of a run: what they are, whether they fit, and what the golden model makes of them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..abi.gemm import GemmPlan
from ..compiler.check import MAX_OUTPUTS
from ..compiler.gemm_image import Y_TYPES
from ..gemm_weights import GemmWeights, check_matrix, check_vector
from ..model import gemm_int8

__all__ = ["GemmJob", "check_gemm_job", "golden_gemm"]


@dataclass(eq=False)
class GemmJob:
    """One matrix product ``y = x @ W``, INT32, or scaled by row and column, biased and rounded once.

    Attributes
    ----------
    weights : GemmWeights, or int8 array [K, N]
        The former are uploaded once and stay; an array is uploaded for this run only.
    x : int8 array [M, K]
    row_scale : float16 array [M] or None
        None: 1.0.
    column_scale, bias : float16 array [N] or None
        Only beside an array of weights: GemmWeights have their own. None: 1.0, and 0.
    out : "int32", "fp16" or "fp32"
        With "int32" there are no scales and no bias.
    fence_before : bool
        The job reads its x only when all jobs before it have written their y.
    """

    weights: object
    x: np.ndarray
    row_scale: np.ndarray | None = None
    column_scale: np.ndarray | None = None
    bias: np.ndarray | None = None
    out: str = "int32"
    fence_before: bool = False

    @cached_property
    def operand(self):
        """The weights as :class:`GemmWeights`.

        Raises
        ------
        InputError
        """
        if isinstance(self.weights, GemmWeights):
            return self.weights
        return GemmWeights(self.weights, self.column_scale, self.bias)

    @property
    def keeps(self):
        """Whether the weights stay uploaded after the run."""
        return isinstance(self.weights, GemmWeights)

    @property
    def given(self):
        """Which of the optional operands there are, for :func:`~eva_hw.compiler.gemm_moved_bytes`."""
        return {"row_scale": self.row_scale is not None, "column_scale": self.operand.column_scale is not None,
                "bias": self.operand.bias is not None}

    def plan(self, config):
        """The :class:`~eva_hw.abi.gemm.GemmPlan` of the job on ``config``."""
        return GemmPlan(config, len(self.x), self.operand.inputs, self.operand.outputs, self.out)


def check_gemm_job(problems, job):
    """Notes everything wrong with a job's operands."""
    check = problems.check
    kind = check(isinstance(job.out, str) and job.out in Y_TYPES,
                 f"out = {job.out!r} must be one of {', '.join(Y_TYPES)}")
    vectors = {"row_scale": job.row_scale, "column_scale": job.column_scale, "bias": job.bias}
    if job.keeps:
        weights, sound = job.weights.weights, True
        for name in ("column_scale", "bias"):
            check(vectors[name] is None,
                  f"{name}: must be None, since the weights are GemmWeights, which have their own")
            vectors[name] = getattr(job.weights, name)
    else:
        weights = job.weights
        sound = GemmWeights.check(problems, weights, job.column_scale, job.bias)
        if sound:
            check(weights.shape[1] <= MAX_OUTPUTS, f"weights: N = {weights.shape[1]} must be at most {MAX_OUTPUTS}")
    if check_matrix(problems, "x", job.x):
        if sound:
            check(job.x.shape[1] == len(weights),
                  f"x: {job.x.shape[1]} columns must be the {len(weights)} rows of the weights")
        check(len(job.x) <= MAX_OUTPUTS, f"x: M = {len(job.x)} must be at most {MAX_OUTPUTS}")
        check_vector(problems, "row_scale", job.row_scale, len(job.x), "row of x")
    else:
        check_vector(problems, "row_scale", job.row_scale, None, "row of x")
    if kind and job.out == "int32":
        for name, value in vectors.items():
            check(value is None, f"{name}: must be None when out is 'int32': such a y is the sums themselves")


def golden_gemm(job):
    """``(y, sticky bits)`` of the golden model."""
    weights = job.operand
    y = gemm_int8(job.x, weights.weights, row_scale=job.row_scale, column_scale=weights.column_scale, bias=weights.bias,
                  out=job.out)
    sticky = {"oc_overflow": False, "y_overflow": False, "y_nan": False}
    if job.out != "int32":
        # Sums are finite: an infinity whose scales and bias are finite comes from rounding.
        finite = np.ones(y.shape, bool)
        for vector in (None if job.row_scale is None else job.row_scale[:, None], weights.column_scale, weights.bias):
            finite &= True if vector is None else np.isfinite(vector)
        sticky["y_overflow"] = bool((np.isinf(y) & finite).any())
        sticky["y_nan"] = bool(np.isnan(y).any())
    return y, sticky
