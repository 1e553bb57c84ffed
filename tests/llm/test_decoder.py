"""The forward pass of a model folder: against plain loops, cached against uncached, golden against float32 and RTL."""

import numpy as np
import pytest

pytest.importorskip("tokenizers")

from eva_hw.errors import InputError  # noqa: E402
from eva_hw.llm.checked import CheckedLinears, different  # noqa: E402
from eva_hw.llm.decoder import Decoder  # noqa: E402
from eva_hw.llm.linears import DenseLinears, Int8Linears, VqLinears  # noqa: E402
from eva_hw.llm.weights import FolderWeights  # noqa: E402
from eva_hw.presets import preset  # noqa: E402
from eva_hw.runtime import Accelerator  # noqa: E402

from .folders import change_config, write_folder  # noqa: E402
from .slow_forward import llama3_rates, slow_logits  # noqa: E402

TOKENS = [7, 200, 31, 31, 255, 0, 64]


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    return FolderWeights(write_folder(tmp_path_factory.mktemp("models") / "plain", bias=True, head="dense"))


@pytest.fixture
def golden():
    with Accelerator(preset("tiny"), "golden") as accelerator:
        yield accelerator


def logits(decoder, tokens=TOKENS):
    return decoder.logits(decoder.hidden(tokens, decoder.new_cache()))


def relative(a, b):
    return float(np.linalg.norm(np.subtract(a, b)) / np.linalg.norm(b))


@pytest.mark.parametrize("options", [{}, {"bias": True, "head": "dense"}, {"head": "vq"}], ids=str)
def test_forward_against_plain_loops(options, tmp_path):
    weights = FolderWeights(write_folder(tmp_path / "m", **options))
    wanted = slow_logits(weights, TOKENS)
    found = logits(Decoder(weights, DenseLinears(weights)))
    assert found.shape == (7, 258) and found.dtype == np.float32
    assert relative(found, wanted) < 1e-5


def test_scaled_rotary_positions(tmp_path):
    weights = FolderWeights(write_folder(tmp_path / "m"))
    scaling = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
               "original_max_position_embeddings": 64}
    plain = [100.0 ** (-2 * i / 16) for i in range(8)]
    rates = llama3_rates(plain, 8.0, 1.0, 4.0, 64)
    assert len({a / b for a, b in zip(plain, rates)}) >= 3  # kept, mixed, and divided by the factor
    change_config(weights.folder, rope_scaling=scaling)
    scaled = FolderWeights(weights.folder)
    assert relative(logits(Decoder(scaled, DenseLinears(scaled))), slow_logits(scaled, TOKENS, rates)) < 1e-5
    change_config(weights.folder, rope_scaling={"type": "linear", "factor": 4.0})
    scaled = FolderWeights(weights.folder)
    wanted = slow_logits(scaled, TOKENS, [rate / 4 for rate in plain])
    assert relative(logits(Decoder(scaled, DenseLinears(scaled))), wanted) < 1e-5
    assert relative(wanted, slow_logits(weights, TOKENS)) > 1e-3


def test_golden_against_float32(weights, golden):
    linears = VqLinears(weights, golden)
    wanted = logits(Decoder(weights, DenseLinears(weights)))
    error = relative(logits(Decoder(weights, linears)), wanted)
    assert 0 < error < 5e-3
    assert linears.tally.linears == 14 * 7 and linears.tally.runs == 8 and not any(linears.tally.sticky.values())


def test_int8_against_float32(weights, golden):
    linears = Int8Linears(weights, golden)
    error = relative(logits(Decoder(weights, linears)), logits(Decoder(weights, DenseLinears(weights))))
    assert 0 < error < 0.1
    assert linears.tally.jobs == 14


def test_tokens_with_outliers_leave_the_int8_mode(weights, golden):
    name, x = "model.layers.0.mlp.down_proj", np.random.default_rng(7).standard_normal((6, 96)).astype(np.float32)
    x[2, 5], x[4, 0] = 400, -90
    right = DenseLinears(weights).run([name], x)[0]
    plain, mixed, vq = (Int8Linears(weights, golden, np.inf), Int8Linears(weights, golden, 7.0),
                        VqLinears(weights, golden))
    found = [linears.run([name], x)[0] for linears in (plain, mixed, vq)]
    far, near = [2, 4], [0, 1, 3, 5]
    assert different(found[1][far], found[2][far]) == 0 and different(found[1][near], found[0][near]) == 0
    assert different(found[0][far], found[2][far]) > 0 and different(found[0][near], found[2][near]) > 0
    assert [linears.tally.jobs for linears in (plain, mixed, vq)] == [1, 1 + 2, 6]
    assert relative(found[1][far], right[far]) < 1e-3 < 1e-2 < relative(found[0][2], right[2])
    assert Int8Linears(weights, golden, 0.0).run([name], x)[0].tolist() == found[2].tolist()


def test_layers_that_are_not_quantized_stay_on_the_host(tmp_path, golden):
    weights = FolderWeights(write_folder(tmp_path / "m", bias=True, dense=("self_attn.v_proj", "mlp.down_proj")))
    linears = VqLinears(weights, golden)
    assert relative(logits(Decoder(weights, linears)), slow_logits(weights, TOKENS)) < 5e-3
    assert linears.tally.linears == 10 * 7
    assert [name for name in linears.load()] == [n for n in weights.linears() if weights.has_layer(n)]


@pytest.mark.parametrize("dense", [(), ("self_attn.k_proj",)], ids=["all quantized", "one on the host"])
def test_cache_gives_the_bits_of_the_whole(dense, tmp_path, golden):
    weights = FolderWeights(write_folder(tmp_path / "m", dense=dense))
    decoder, text, compared = Decoder(weights, VqLinears(weights, golden)), np.random.default_rng(2), 0
    tokens = text.integers(0, 258, 40)
    whole = decoder.hidden(tokens, decoder.new_cache())
    for cuts in ([], range(1, 40), [1, 9, 10, 33]):
        cache = decoder.new_cache()
        parts = [decoder.hidden(part, cache) for part in np.split(tokens, list(cuts))]
        assert cache.length == 40
        assert different(np.concatenate(parts), whole) == 0
        compared += whole.size
    copied = cache.copy()
    assert different(decoder.hidden([3, 4], copied), decoder.hidden([3, 4], cache)) == 0
    assert compared == 3 * 40 * 64
    other = decoder.hidden([*tokens[:-1], tokens[-1] ^ 1], decoder.new_cache())
    assert different(other[:-1], whole[:-1]) == 0 and different(other[-1], whole[-1]) > 0


def test_cache_grows(tmp_path, golden):
    weights = FolderWeights(write_folder(tmp_path / "m", num_hidden_layers=1, max_position_embeddings=600))
    decoder = Decoder(weights, DenseLinears(weights))
    tokens = np.random.default_rng(3).integers(0, 258, 300)
    cache = decoder.new_cache()
    parts = [decoder.hidden(part, cache) for part in np.split(tokens, [250, 255, 256, 257])]
    np.testing.assert_allclose(np.concatenate(parts), decoder.hidden(tokens, decoder.new_cache()), rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", ["tiny", "small"])
def test_hidden_states_of_the_hardware(name, weights):
    """Prompt and single tokens on the RTL: all linear outputs and hidden states as on the golden model."""
    with (Accelerator(preset(name), "verilator", progress=False) as rtl,
          Accelerator(preset(name), "golden") as golden):
        seen, compared = ({}, {}), 0
        decoders = [Decoder(weights, VqLinears(weights, accelerator)) for accelerator in (rtl, golden)]
        caches = [decoder.new_cache() for decoder in decoders]
        for tokens in ([5, 6, 7], [8], [9]):
            for decoder, cache, into in zip(decoders, caches, seen):
                into["end"] = decoder.hidden(tokens, cache, into.__setitem__)
            assert seen[0].keys() == seen[1].keys() and len(seen[0]) == 14 + 2 + 1
            for key, want in seen[1].items():
                assert different(seen[0][key], want) == 0, key
                compared += want.size
        assert compared == 5 * (2 * (3 * 64 + 2 * 32 + 2 * 96 + 64) + 64)
        tally = decoders[0].linears.tally
        assert tally.cycles > tally.roofline_cycles > 0
        int8 = [Decoder(weights, Int8Linears(weights, accelerator)) for accelerator in (rtl, golden)]
        states = [decoder.hidden([1, 2, 3], decoder.new_cache()) for decoder in int8]
        assert different(*states) == 0


def test_comparison_finds_one_bit(weights, golden):
    class Wrong(VqLinears):
        def run(self, names, x):
            made = super().run(names, x)
            if names[0].endswith("1.self_attn.q_proj"):
                made[1].view(np.uint32)[0, 3] ^= 1
            return made

    good = VqLinears(weights, golden)
    checked = CheckedLinears(Wrong(weights, golden), good)
    logits(Decoder(weights, checked), [1, 2])
    assert checked.mismatches == 1 and checked.wrong == ["model.layers.1.self_attn.k_proj"]
    assert checked.comparisons == 2 * 2 * (3 * 64 + 2 * 32 + 2 * 96)
    assert different(np.zeros(3, np.float32), np.zeros(4, np.float32)) == 4


def test_outliers_raise_only_their_own_token_s_exponent(weights, golden):
    """A token's bits do not depend on its neighbours, even if one of them needs a larger exponent."""
    linears = VqLinears(weights, golden)
    x = np.random.default_rng(4).standard_normal((3, 64)).astype(np.float32) / 10000  # subnormal OC values lose bits
    x[1] *= 60000 / np.abs(x[1]).max()
    together = linears.run(["model.layers.0.mlp.up_proj"], x)[0]
    alone = [linears.run(["model.layers.0.mlp.up_proj"], row[None])[0][0] for row in x]
    assert different(together, np.stack(alone)) == 0
    assert not linears.tally.sticky["oc_overflow"]
    assert linears.tally.jobs == 3 + 3
    with pytest.raises(InputError, match="an input of model.layers.0.mlp.up_proj is 1.2e.05, which FP16 cannot hold"):
        linears.run(["model.layers.0.mlp.up_proj"], 2 * x)


def test_layers_with_the_same_codebooks_are_one_job(tmp_path, golden):
    weights = FolderWeights(write_folder(tmp_path / "m", shared=True))
    apart, joined = VqLinears(weights, golden), VqLinears(weights, golden)
    apart.together = lambda names: [(name,) for name in names]
    assert list(joined.load()) == weights.linears()
    found = [logits(Decoder(weights, linears)) for linears in (joined, apart)]
    assert different(*found) == 0
    # q, k, v are one job, so are gate and up; their widths differ.
    assert (joined.tally.jobs, apart.tally.jobs) == (8 * len(TOKENS), 14 * len(TOKENS))
    assert joined.tally.linears == apart.tally.linears == 14 * len(TOKENS)
    with Accelerator(preset("tiny"), "verilator", progress=False) as rtl:
        on_rtl, on_host = (logits(Decoder(weights, linears), [3]) for linears in (VqLinears(weights, rtl), apart))
        assert different(on_rtl, on_host) == 0


def test_tokens_outside_the_vocabulary(weights, golden):
    decoder = Decoder(weights, VqLinears(weights, golden))
    with pytest.raises(InputError, match=r"tokens = \[258, -1\] must be one or more from 0 to 257"):
        decoder.hidden([1, 258, -1], decoder.new_cache())
    with pytest.raises(InputError, match=r"tokens = \[\] must be"):
        decoder.hidden([], decoder.new_cache())
