"""Model folders: what is wrong with them is said at once."""

import pytest

pytest.importorskip("tokenizers")

from eva_hw.errors import InputError  # noqa: E402
from eva_hw.llm.weights import FolderWeights  # noqa: E402

from .folders import change_config, write_folder  # noqa: E402


def problems(folder):
    with pytest.raises(InputError) as caught:
        FolderWeights(folder)
    return caught.value.problems


def test_all_that_is_missing_is_named(tmp_path):
    without = ("model.norm.weight", "model.layers.1.mlp.up_proj", "model.layers.0.self_attn.q_proj")
    found = problems(write_folder(tmp_path / "m", without=without))
    assert found == ["has no tensor model.norm.weight, model.layers.0.self_attn.q_proj.weight, "
                     "model.layers.1.mlp.up_proj.weight (nor .codes, .codebooks and .scales instead of a linear "
                     "layer's .weight)"]


def test_all_wrong_shapes_are_named(tmp_path):
    folder = write_folder(tmp_path / "m")
    change_config(folder, vocab_size=300, intermediate_size=128)
    found = problems(folder)
    assert "model.embed_tokens.weight: shape [258, 64] must be [300, 64], as config.json says" in found
    assert "model.layers.0.mlp.down_proj: shape [64, 96] must be [64, 128], as config.json says" in found
    assert len(found) == 1 + 2 * 3


def test_all_wrong_settings_are_named(tmp_path):
    folder = write_folder(tmp_path / "m")
    change_config(folder, model_type="mamba", hidden_act="gelu", hidden_size=None, num_hidden_layers=-1,
                  rms_norm_eps="small", rope_scaling={"rope_type": "yarn"})
    found = [text for text in problems(folder) if text.startswith("config.json")]
    for wanted in ("model_type = 'mamba' must be 'llama'", "hidden_act = 'gelu' must be 'silu'",
                   "hidden_size = None must be a positive whole number", "num_hidden_layers = -1 must be",
                   "rms_norm_eps = 'small' must be a positive number",
                   "rope_type = 'yarn' must be one of default, linear, llama3"):
        assert any(wanted in text for text in found), wanted
    assert len(found) == 6


def test_factors_of_scaled_positions_are_checked(tmp_path):
    folder = write_folder(tmp_path / "m")
    change_config(folder, rope_scaling={"rope_type": "llama3", "factor": 0}, num_key_value_heads=3, head_dim=15)
    found = problems(folder)
    assert "config.json: rope_scaling factor = 0 must be a positive number" in found
    assert "config.json: num_attention_heads = 4 must be a multiple of num_key_value_heads = 3" in found
    assert "config.json: head_dim = 15 must be even" in found
    assert len(found) == 6


def test_no_folder(tmp_path):
    assert problems(tmp_path / "none") == ["there is no such folder"]


def test_settings_of_a_folder(tmp_path):
    folder = write_folder(tmp_path / "m", head="vq")
    change_config(folder, eos_token_id=[5, 7], rope_theta=None, rope_parameters={"rope_theta": 500.0}, head_dim=None)
    weights = FolderWeights(folder)
    assert weights.settings.end_tokens == (5, 7) and weights.settings.rope_base == 500.0
    assert weights.settings.head_width == 16 and not weights.settings.tied
    assert weights.has_layer("lm_head") and not weights.has_layer("model.norm")
    assert len(weights.linears()) == 14
