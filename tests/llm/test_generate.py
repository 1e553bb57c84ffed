"""Texts and tokens: tokenizer, chats, streaming, drawing tokens, costs, and the command."""

import numpy as np
import pytest

pytest.importorskip("tokenizers")

from eva_hw.cli import generate as command  # noqa: E402
from eva_hw.cli.main import main  # noqa: E402
from eva_hw.errors import InputError  # noqa: E402
from eva_hw.llm.decoder import Decoder  # noqa: E402
from eva_hw.llm.generate import Cost, Generator, choose_token  # noqa: E402
from eva_hw.llm.linears import Int8Linears, VqLinears  # noqa: E402
from eva_hw.llm.tally import Tally  # noqa: E402
from eva_hw.llm.text import Text, load_text  # noqa: E402
from eva_hw.llm.weights import FolderWeights  # noqa: E402
from eva_hw.presets import preset  # noqa: E402
from eva_hw.runtime import Accelerator  # noqa: E402

from .folders import make_tokenizer, write_folder  # noqa: E402


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_folder(tmp_path_factory.mktemp("models") / "m")


@pytest.fixture(scope="module")
def generator(folder):
    weights = FolderWeights(folder)
    with Accelerator(preset("tiny"), "golden") as accelerator:
        yield Generator(Decoder(weights, VqLinears(weights, accelerator)),
                        Decoder(weights, Int8Linears(weights, accelerator)))


def ends(*arguments):
    with pytest.raises(SystemExit) as ended:
        main(list(map(str, arguments)))
    return ended.value.code or 0


# Text -------------------------------------------------------------------------------------------

def test_round_trip():
    text = Text(make_tokenizer())
    for sample in ("plain", "ünïcödé 漢字 🙂", " spaces  and\n\ttabs ", "<|im_start|>"):
        ids = text.encode(sample)
        assert text.decode(ids) == ("" if sample.startswith("<|") else sample)
    assert text.encode("<|im_start|>x")[0] == 256 and text.end_tokens == {257}
    with pytest.raises(InputError, match="prompt: must not be empty"):
        text.encode("")


def test_chat():
    text = Text(make_tokenizer())
    wanted = "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    assert text.chat("Hi", "Be kind.") == text.encode(wanted)
    assert text.chat("Hi") == text.encode(wanted.partition("<|im_end|>\n")[2])
    llama = Text(make_tokenizer(("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>")), [9])
    assert llama.chat("Hi") == llama.encode("<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
                                            "<|start_header_id|>assistant<|end_header_id|>\n\n")
    assert llama.end_tokens == {9, 258}
    with pytest.raises(InputError, match="the tokenizer must have <|im_start|> or <|start_header_id|> for a chat"):
        Text(make_tokenizer(())).chat("Hi")


def test_characters_of_several_tokens_come_whole():
    text = Text(make_tokenizer())
    pieces = list(text.stream(text.encode("a漢🙂b")))
    assert [piece for piece in pieces if piece] == ["a", "漢", "🙂", "b"]
    assert "".join(text.stream(text.encode("é")[:1])) == "\ufffd"  # cut in two: shown as what it is
    assert list(text.stream([])) == []


def test_pieces_come_as_their_tokens_do():
    text, asked = Text(make_tokenizer()), []

    def ids():
        for token in text.encode("abc"):
            asked.append(token)
            yield token

    for count, piece in enumerate(text.stream(ids()), 1):
        assert len(asked) == min(count, 3)


def test_tokenizer_of_a_folder(folder, tmp_path):
    assert load_text(FolderWeights(folder)).encode("ab") == Text(make_tokenizer()).encode("ab")
    broken = write_folder(tmp_path / "broken")
    (broken / "tokenizer.json").write_text("{}")
    with pytest.raises(InputError, match="is not a readable tokenizer"):
        load_text(FolderWeights(broken))


# Generation -------------------------------------------------------------------------------------

def test_drawing_tokens():
    scores, rng = np.array([0.0, 2.0, 1.0, -50.0], np.float32), np.random.default_rng(1)
    assert {choose_token(scores, 0, None) for _ in range(5)} == {1}
    drawn = np.bincount([choose_token(scores, 0.5, rng) for _ in range(4000)], minlength=4)
    wanted = np.exp(scores / 0.5) / np.exp(scores / 0.5).sum()
    assert drawn[3] == 0 and np.abs(drawn / 4000 - wanted).max() < 0.03


def test_greedy_tokens_are_those_of_the_whole_text(generator):
    prompt = [3, 1, 4, 1, 5]
    plain = Generator(generator.decoder)
    made = list(plain.tokens(prompt, 6))
    assert len(made) == 6
    for k, token in enumerate(made):
        decoder = plain.decoder
        hidden = decoder.hidden(prompt + made[:k], decoder.new_cache())
        assert token == int(np.argmax(decoder.logits(hidden[-1:])))
    assert plain.prompt_cost.tokens == 5 and plain.cost.tokens == 5  # the last one is not needed by any other
    assert plain.cost.tally.linears == 5 * 14 and plain.cost.tally.roofline_cycles > 0
    assert plain.cost.cycles_per_token is None and plain.cost.tokens_per_s(500) is None


def test_seed_and_temperature(generator):
    draws = [list(generator.tokens([1, 2], 8, temperature=2.0, seed=seed)) for seed in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]


def test_int8_prompt_goes_on_in_vq(generator):
    done = []
    made = list(generator.tokens(list(range(40)), 3, progress=done.append))
    assert len(made) == 3 and done == [40]
    assert generator.prompt_cost.tally.jobs == 14 and generator.cost.tally.linears == 2 * 14


def test_end_token_ends(generator):
    first = next(generator.tokens([1, 2], 1))
    assert list(Generator(generator.decoder, None, {first}).tokens([1, 2], 5)) == []


def test_bad_arguments_are_named_together(generator):
    with pytest.raises(InputError) as caught:
        generator.tokens([1] * 70, 0, temperature=-1, seed=-2)
    assert caught.value.problems == [
        "tokens = 0 must be at least 1", "temperature = -1 must be from 0 to 100", "seed = -2 must be at least 0",
        "70 tokens of the prompt and 0 new ones must be at most the 64 that the model was made for"]


def test_costs():
    cost = Cost(4, 2.0, Tally(cycles=2_000_000, roofline_cycles=1_000_000))
    assert cost.cycles_per_token == 500_000 and cost.roofline_cycles_per_token == 250_000
    assert cost.tokens_per_s(500) == 1000.0
    assert Cost().roofline_cycles_per_token is None
    tally = Tally(cycles=5, sticky={"y_nan": False})
    before = tally.copy()
    tally.add_tally(Tally(cycles=7, jobs=2, sticky={"y_nan": True}))
    assert tally.since(before) == Tally(cycles=7, jobs=2, sticky={"y_nan": True})


# The command ------------------------------------------------------------------------------------

def test_command_streams_and_reports(folder, capsys):
    assert ends("generate", "--model", folder, "--prompt", "Hello", "--preset", "tiny", "--tokens", 5, "--chat",
                "--system", "Be kind.", "--check", "--prefill", "int8") == 0
    shown = capsys.readouterr()
    weights = FolderWeights(folder)
    text = load_text(weights)
    with Accelerator(preset("tiny"), "golden") as accelerator:
        generator = Generator(Decoder(weights, VqLinears(weights, accelerator)),
                              Decoder(weights, Int8Linears(weights, accelerator)), text.end_tokens)
        wanted = list(generator.tokens(text.chat("Hello", "Be kind."), 5))
    assert shown.out == text.decode(wanted) + "\n"
    assert "tokens/s, wall clock" in shown.err
    compared = generator.cost.tokens * 2 * (3 * 64 + 2 * 32 + 2 * 96)
    assert f"{compared:,} of {compared:,} outputs of linear layers bit-exact" in shown.err


def test_command_tells_of_a_mismatch(folder, monkeypatch, capsys):
    from eva_hw.llm import linears

    class Wrong(linears.VqLinears):
        count = 0

        def run(self, names, x):
            made = super().run(names, x)
            Wrong.count += 1
            if Wrong.count == 3:
                made[0].view(np.uint32)[0, 0] ^= 1
            return made

    monkeypatch.setattr(linears, "VqLinears", Wrong)
    assert ends("generate", "--model", folder, "--prompt", "x", "--preset", "tiny", "--tokens", 1, "--check") == 1
    assert "outputs differ from the model, first in model.layers.0.self_attn.o_proj" in capsys.readouterr().err


@pytest.mark.parametrize("arguments, wanted", [
    (["--model", "nowhere"], "nowhere: there is no such folder"),
    (["--system", "s"], "generate: --system is for --chat only"),
    (["--mhz", "0"], "generate: mhz = 0.0 must be more than 0"),
    (["--preset", "huge"], "preset: 'huge' is not a preset"),
    (["--preset", "tiny", "--config", "x.toml"], "give either the preset 'tiny' or --config x.toml"),
    (["--prompt", ""], "prompt: must not be empty"),
    (["--tokens", "0", "--temperature", "-1"], "generate: 2 problems"),
], ids=str)
def test_command_says_what_is_wrong(arguments, wanted, folder, capsys):
    assert ends("generate", "--model", folder, "--prompt", "x", *arguments) == 2
    shown = capsys.readouterr()
    assert wanted in shown.err and "Traceback" not in shown.err and shown.out == ""


def test_missing_tensors_are_listed_at_once(tmp_path, capsys):
    folder = write_folder(tmp_path / "m", without=("model.norm.weight", "model.layers.0.mlp.up_proj"))
    assert ends("generate", "--model", folder, "--prompt", "x") == 2
    assert "has no tensor model.norm.weight, model.layers.0.mlp.up_proj.weight" in capsys.readouterr().err


def test_default_model_says_how_it_is_made(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert ends("generate", "--prompt", "x") == 2
    shown = capsys.readouterr().err
    assert "'make quantize-smollm2' makes it, or: eva-hw quantize --codebooks 4 --out build/models/smollm2-4x8" in shown
    assert command.DEFAULT_MODEL.as_posix() == "build/models/smollm2-4x8"
