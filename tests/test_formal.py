"""The proofs on the emitted Verilog hold, and each kind of them fails when the hardware is broken."""

import json

import pytest
import typer
from typer.testing import CliRunner

from eva_hw import formal
from eva_hw.cli import formal as command
from eva_hw.errors import InputError
from eva_hw.formal import run
from eva_hw.formal.translate import translate

PROOFS = {proof.name: proof for proof in formal.proofs()}
#: Proven in a few seconds; the others differ from them in size only.
QUICK = ("fp16_significand_product", "fp16_sum_step", "int8_sum_step", "eva_queue_1x4", "eva_queue_3x4",
         "eva_beat_fifo_3x8", "eva_beat_fifo_5x4", "eva_word_stream_w32_o8", "eva_word_stream_w8_o32")


@pytest.mark.parametrize("name", [
    name if name in QUICK else pytest.param(name, marks=pytest.mark.full) for name in PROOFS])
def test_proven(name):
    found = formal.prove(PROOFS[name], seconds=600)  # the largest needs half a minute alone on a core
    assert found.verdict == "proven", found.shown
    assert found.depth >= PROOFS[name].k and found.seconds > 0


def test_names_are_unique():
    assert len(PROOFS) == len(formal.proofs()) == 22
    assert set(QUICK) < set(PROOFS)


def test_identity():
    found = formal.prove_identity()
    assert found.good and found.method == f"exhaustive, {1 << 22} pairs"


def test_a_wrong_identity_fails():
    found = formal.prove_identity(recombined=lambda ll, lh, hl, hh: ll + (lh + hl << 7) + (hh << 13))
    assert found.verdict == "failed" and found.shown


def replace(module, old, new):
    def mutate(texts):
        assert texts[module].count(old) == 1, f"{old!r} must occur once in {module}"
        return {**texts, module: texts[module].replace(old, new)}
    return mutate


MUTATIONS = [
    pytest.param("fp16_significand_product", "eva_mixed_pe", "{ middle, 7'h00 }", "{ middle[10:0], 8'h00 }",
                 id="middle_products_misplaced"),
    pytest.param("fp16_significand_product", "eva_mixed_pe", "product_1[10:0] + product_2[10:0]",
                 "product_1[9:0] + product_2[10:0]", id="middle_product_too_narrow"),
    pytest.param("fp16_sum_step", "eva_mixed_pe", "{ addend_1, i_carry[0]", "{ addend_1, 1'h0 & i_carry[0]",
                 id="carry_lost"),
    pytest.param("fp16_sum_step", "eva_mixed_pe", "total_1[33] & late_fp16", "total_1[32] & late_fp16", id="carry_wrong"),
    pytest.param("fp16_sum_step", "eva_mixed_pe", "a_zero & w_inf", "1'h0 & w_inf", id="zero_times_inf"),
    pytest.param("int8_sum_step", "eva_mixed_pe", "aligned[47], aligned[47:32] }", "aligned[46], aligned[47:32] }",
                 id="int8_sign"),
    pytest.param("operand_kept", "eva_mixed_pe", "| shadow[14:10]", "| shadow[13:10]", id="normal_not_seen"),
    pytest.param("eva_queue_3x4", "eva_queue_3x4", "used[2] ? entry2 : i_payload", "used[1] ? entry2 : i_payload",
                 id="queue_reorders"),
    pytest.param("eva_queue_3x4", "eva_queue_3x4", "i__ready = ~ used[2]", "i__ready = 1'h1", id="queue_overflows"),
    pytest.param("eva_beat_fifo_3x8", "eva_beat_fifo_3x8", "pop = used[0] & o_ready", "pop = o_ready & i_valid",
                 id="flop_fifo_pops_when_empty"),
    pytest.param("eva_beat_fifo_5x4", "eva_beat_fifo_5x4", "sram_w_addr == 3'h4", "sram_w_addr == 3'h5",
                 id="sram_fifo_wraps_late"),
    pytest.param("eva_beat_fifo_5x4", "eva_beat_fifo_5x4", "move = fetched & \\$1", "move = fetched",
                 id="sram_fifo_overwrites_output"),
    pytest.param("eva_beat_fifo_5x4", "eva_sram_5x4", "if (r_en)", "if (1'b1)", id="sram_output_not_held"),
    pytest.param("eva_word_stream_w32_o8", "eva_word_stream_w32_o8", "== 2'h3", "== 2'h2",
                 id="word_lost"),
    pytest.param("eva_word_stream_w8_o32", "eva_word_stream_w8_o32", "kept[23:8]", "{ kept[15:8], kept[23:16] }",
                 id="beats_swapped"),
]


@pytest.mark.parametrize("name, module, old, new", MUTATIONS)
def test_broken_hardware_fails(name, module, old, new):
    found = formal.prove(PROOFS[name], seconds=600, mutate=replace(module, old, new))
    assert found.verdict == "failed" and not found.good
    assert found.shown and found.shown[0].startswith("cycle 0: ")


# Verdicts ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("answers, verdict, depth", [
    (["unsat"], "vacuous", 0),
    (["timeout"], "timeout", 0),
    (["sat", "-", "timeout"], "timeout", 0),
    (["sat", "-", "unsat", "timeout"], "bounded", 9),
    (["sat", "-", "unsat", "sat", "-", "unsat"], "not inductive", 9),
    (["sat", "-", "unsat", "sat", "-", "timeout"], "not inductive", 9),
    (["sat", "-", "unsat", "sat", "-", "sat", "-"], "failed", 0),
    (["sat", "-", "unsat", "unsat"], "proven", 9),
])
def test_verdicts(monkeypatch, answers, verdict, depth):
    """"-" stands for the values that follow a "sat"."""
    left = list(answers)
    monkeypatch.setattr(run, "solve", lambda path, seconds: (left.pop(0), ""))
    found = formal.prove(PROOFS["eva_queue_1x4"])
    assert (found.verdict, found.depth, found.good) == (verdict, depth, verdict == "proven")
    assert not left


def test_no_time_is_no_proof():
    assert formal.prove(PROOFS["eva_queue_1x4"], seconds=0).verdict == "timeout"


def test_yosys_errors_are_shown():
    with pytest.raises(RuntimeError, match="eva_queue_1x4: Yosys failed: (.|\n)*ERROR"):
        translate(PROOFS["eva_queue_1x4"], {"eva_queue_1x4": "module eva_queue_1x4(;"})


# The command ------------------------------------------------------------------------------------

@pytest.fixture
def invoke(monkeypatch, tmp_path):
    def invoke(*arguments):
        def write_report(name, figures, **_):
            path = tmp_path / f"{name}.json"
            path.write_text(json.dumps(figures))
            return path

        monkeypatch.setattr(command, "write_report", write_report)
        app = typer.Typer()
        app.callback()(lambda: None)
        command.register(app)
        result = CliRunner().invoke(app, ["formal", *arguments])
        return result, {path.stem: json.loads(path.read_text()) for path in tmp_path.glob("*.json")}
    return invoke


@pytest.mark.parametrize("verdict, failed, unfinished", [
    ("proven", 0, 0), ("failed", 22, 0), ("vacuous", 22, 0), ("not inductive", 22, 0), ("bounded", 0, 22),
    ("timeout", 0, 22)])
def test_command_reports(monkeypatch, invoke, verdict, failed, unfinished):
    monkeypatch.setattr(command.formal, "prove", lambda proof, seconds: run.Verdict(
        proof.name, "1-induction", 9, verdict, 0.25, [] if verdict == "proven" else ["cycle 0: i_valid = 1"]))
    result, reports = invoke()
    assert result.exit_code == (0 if verdict == "proven" else 1)
    figures = reports["formal"]
    assert (figures["failed"], figures["unfinished"], len(figures["proofs"])) == (failed, unfinished, 23)
    assert figures["proofs"][1] == {"name": "fp16_significand_product", "method": "1-induction", "depth": 9,
                                    "verdict": verdict, "seconds": 0.25}
    assert ("fp16_sum_step: cycle 0: i_valid = 1" in result.output) == (verdict != "proven")


def test_some_proofs_have_a_report_of_their_own(invoke):
    result, reports = invoke("--only", "eva_queue_1x", "--only", "identity")
    assert result.exit_code == 0
    assert set(reports) == {"formal_some"}
    assert [p["name"] for p in reports["formal_some"]["proofs"]] == ["significand_product_identity", "eva_queue_1x4"]


def test_unknown_names_are_refused(invoke):
    result, reports = invoke("--only", "fifo_9")
    assert isinstance(result.exception, InputError) and not reports
    assert "no proof has 'fifo_9' in its name; there are significand_product_identity, fp16" in str(result.exception)
