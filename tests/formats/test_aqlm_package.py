"""Against the package that AQLM checkpoints are run with: its own reading, unpacking and dequantization.

Where it is exact: in FP64 both take the exact sum of at most 8 FP16 values (44 bits) and round its product with the
scale once. In FP16, as its kernels do, it rounds each of C - 1 sums and the product, each by at most 2^-11 of a value
that the magnitudes bound.
"""

import numpy as np
import pytest

from eva_hw.formats.aqlm import open_checkpoint, write_checkpoint
from tests.formats import by_hand

torch = pytest.importorskip("torch", reason="needs torch and aqlm (the extra `aqlm`)")
aqlm = pytest.importorskip("aqlm", reason="needs torch and aqlm (the extra `aqlm`)")
pytestmark = pytest.mark.full


def _theirs(path, name, n, dtype):
    """W [N, K] of a module by aqlm's own functions, from safetensors' torch reader."""
    from aqlm.utils import _dequantize_weight, unpack_int_data
    from safetensors.torch import load_file
    tensors = load_file(path / "model.safetensors")
    codes, books, scales = (tensors[f"{name}.{part}"] for part in ("codes", "codebooks", "scales"))
    return _dequantize_weight(unpack_int_data(codes, n), books.to(dtype), scales.to(dtype)).double().numpy()


@pytest.mark.parametrize("floats", ["F16", "BF16", "F32"])
@pytest.mark.parametrize("variant", by_hand.VARIANTS, ids=lambda v: f"{v[0]}x{v[1]}g{v[2]}")
def test_the_same_weights(tmp_path, variant, floats):
    rng, n = np.random.default_rng([*variant, len(floats)]), variant[1]
    kinds = [kind for kind in ("I8", "I16", "I32", "I64") if int(kind[1:]) >= n]
    tensors, weights, _ = by_hand.layer_tensors(rng, "m", 24, 10, variant, codes=kinds[0], floats=floats)
    if floats == "F16":  # all bits of FP16, not only values that suit every type
        for part in ("codebooks", "scales"):
            shape = tensors[f"m.{part}"][1].shape
            tensors[f"m.{part}"] = ("F16", (rng.standard_normal(shape) * 2.0 ** rng.integers(-9, 3, shape))
                                    .astype(np.float16))
    by_hand.write_folder(tmp_path / "k", tensors, by_hand.config(variant))
    layer = open_checkpoint(tmp_path / "k").layer("m")
    ours, exact = layer.dequantize(), _theirs(tmp_path / "k", "m", n, torch.float64)
    assert np.array_equal(ours, exact)
    assert floats == "F16" or np.array_equal(ours, weights)
    magnitudes = np.abs(layer.codebooks.astype(np.float64))
    bound = sum(magnitudes[c][layer.codes[:, :, c]] for c in range(variant[0])).reshape(ours.shape)
    bound *= np.abs(layer.scales.astype(np.float64))[:, None]
    half = _theirs(tmp_path / "k", "m", n, torch.float16)
    assert (np.abs(half - ours) <= bound * variant[0] * 2.0 ** -11 + 2.0 ** -24).all()
    assert ours.size == 240 * variant[2]


def test_what_we_write_loads_into_its_linear(tmp_path):
    """Names, shapes and types of a written checkpoint are those of aqlm.QuantizedLinear, and it computes with them."""
    from aqlm import QuantizedLinear
    from aqlm.inference_kernels.dequantization import dequantize_gemm
    from safetensors.torch import load_file

    from eva_hw.layer import VqLayer
    from eva_hw.model import vq_linear
    rng, count = np.random.default_rng(7), 0
    for c, n, d in by_hand.VARIANTS:
        layer = VqLayer.random(rng, outputs=20, inputs=6 * d, d=d, codebooks=c, index_bits=n, bias=True)
        folder = tmp_path / f"{c}x{n}g{d}"
        write_checkpoint(folder, [("m", layer)])
        linear = QuantizedLinear(6 * d, 20, d, 1, c, n, bias=True, dtype=torch.float16)
        state = {name.removeprefix("m."): value for name, value in load_file(folder / "model.safetensors").items()}
        assert {k: (v.shape, v.dtype) for k, v in state.items()} == {
            k: (v.shape, v.dtype) for k, v in linear.state_dict().items()}
        linear.load_state_dict(state, strict=True)
        x = rng.standard_normal(6 * d).astype(np.float16)
        theirs = dequantize_gemm(torch.tensor(x.astype(np.float32)), linear.codes, linear.codebooks.float(),
                                 linear.scales.float(), linear.bias.float())
        ours = vq_linear(layer, x, out_fp32=True).y
        # Ours: each OC value is rounded to 11 bits; theirs: FP32.
        assert np.sqrt(np.mean((theirs.numpy() - ours) ** 2) / np.mean(ours ** 2)) < 1e-3
        count += ours.size
    assert count == 20 * len(by_hand.VARIANTS)


def test_gptvqs_tensors(tmp_path):
    """As GPTVQ holds them: torch tensors, centroids with gradients, put together by its own gather."""
    from eva_hw.formats.gptvq import from_gptvq
    generator, groups, rows = torch.Generator().manual_seed(8), 3, 4
    centroids = [torch.randn(groups, 16, 2, generator=generator).half().float().requires_grad_() for _ in range(2)]
    assignments = [[torch.randint(0, 16, (groups, rows), generator=generator) for _ in range(6)] for _ in range(2)]
    parts = [torch.gather(c, 1, a.unsqueeze(-1).expand(-1, -1, 2)).view(groups * rows, -1)
             for c, block in zip(centroids, assignments, strict=True) for a in block]
    weights = torch.concat(parts, dim=1).detach().double().numpy()
    assert np.array_equal(from_gptvq(centroids, assignments).dequantize(), weights) and weights.shape == (12, 24)
