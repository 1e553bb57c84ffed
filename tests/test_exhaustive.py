"""The arithmetic benches: a stratified sample (everything: `make exhaustive`), their oracle, and that they can fail."""

import random
import subprocess
from fractions import Fraction

import pytest
import typer
from typer.testing import CliRunner

from eva_hw.bench import exhaustive
from eva_hw.bench.exhaustive_build import LANES, build_oracle
from eva_hw.cli import exhaustive as command
from eva_hw.errors import InputError

from . import oracle

SEED = 20250611
CORNERS = (0, 1, 0x3FF, 0x200)


def by_kind(kind, **options):
    return [job for job in exhaustive.jobs(**options) if job.kind == kind]


# The RTL ----------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def sampled():
    print(f"seed {SEED}")
    return exhaustive.run(exhaustive.jobs(256, SEED), processes=1)


@pytest.mark.parametrize("kind, compared", [
    ("fp16_pairs", 1 << 24), ("int8_pairs", 4 << 16), ("converter_values", 131072 + 655360 + 190464 + 4482),
    ("fp16_dot_products", 100_000), ("int8_dot_products", 100_000)])
def test_sample(sampled, kind, compared):
    assert sampled[kind].mismatches == 0, "\n".join(sampled[kind].shown)
    assert sampled[kind].compared >= compared


def test_sums_reach_every_class(sampled):
    counts = sampled["fp16_dot_products"].counts
    assert {name for name in counts if name.startswith("d")} == {"d8", "d16", "d24", "d32"}
    assert sum(name.startswith("stratum") for name in counts) == 9
    assert sum(name.startswith("result") for name in counts) == 6
    assert all(value > 1000 for value in counts.values()), counts


@pytest.mark.full
@pytest.mark.parametrize("seed", [SEED, SEED + 1])
def test_many_sums(seed):
    print(f"seed {seed}")
    found = exhaustive.run(by_kind("fp16_dot_products", seed=seed), processes=1)["fp16_dot_products"]
    assert found.mismatches == 0, "\n".join(found.shown)
    assert found.compared >= 10_000_000


def replace(module, old, new):
    def mutate(texts):
        if module in texts:
            assert texts[module].count(old) == 1, f"{old!r} must occur once in {module}"
            texts[module] = texts[module].replace(old, new)
        return texts
    return mutate


full = pytest.mark.full
MUTATIONS = [
    pytest.param("fp16_pairs", "eva_mixed_pe", "product_0[13:0] }", "product_0[13:1], 1'h0 }", id="lowest_product_bit"),
    pytest.param("fp16_pairs", "eva_mixed_pe", "a_zero & w_inf", "1'h0 & w_inf", id="zero_times_inf", marks=full),
    pytest.param("int8_pairs", "eva_mixed_pe", "aligned[47], aligned[47:32] }", "aligned[46], aligned[47:32] }",
                 id="int8_sign", marks=full),
    pytest.param("fp16_dot_products", "eva_mixed_pe", "{ addend_1, i_carry[0]", "{ addend_1, 1'h0 & i_carry[0]",
                 id="carry", marks=full),
    pytest.param("converter_values", "eva_fp16_to_fixed", "i_value[9:0] } : 11'h000", "i_value[9:1], 1'h0 } : 11'h000",
                 id="lowest_fixed_bit", marks=full),
]


@pytest.mark.parametrize("kind, module, old, new", MUTATIONS)
def test_a_broken_bit_is_caught(kind, module, old, new):
    jobs = by_kind(kind, sample=256, seed=SEED)[:4]  # a quarter of the sampled pairs is enough
    found = exhaustive.run(jobs, processes=1, lanes=2, mutate=replace(module, old, new))[kind]
    assert found.compared >= sum(job.expected for job in jobs)
    assert found.mismatches > 0 and found.shown


# The oracle -------------------------------------------------------------------------------------

def ask(lines):
    """``[(bits, overflow)]`` of the C++ oracle."""
    done = subprocess.run([build_oracle()], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
    answers = [line.split() for line in done.stdout.splitlines()]
    assert len(answers) == len(lines)
    return [(int(bits, 16), overflow == "1") for bits, overflow in answers]


def pattern(rng, top=None):
    """FP16 bits; ``top``: sign and exponent field."""
    fraction = rng.choice(CORNERS) if rng.random() < 0.3 else rng.getrandbits(10)
    return (rng.getrandbits(6) if top is None else top) << 10 | fraction


def tie(rng):
    """Terms whose sum lies in the middle of two FP16 values, or next to it."""
    exponent = rng.randrange(31)
    number = rng.getrandbits(1) << 15 | exponent << 10 | rng.getrandbits(10)
    half = max(exponent, 1) - 26  # of the last place: 2^half as a product of two powers of two
    first = rng.randrange(max(-14, half - 15), min(15, half + 14) + 1)
    terms = [(number, 0x3C00), ((first + 15) << 10 | rng.getrandbits(1) << 15, (half - first + 15) << 10)]
    if rng.random() < 0.5:
        terms.append((rng.getrandbits(1) << 15 | 1, rng.choice([1, 2, 0x200])))
    rng.shuffle(terms)
    return terms


def test_oracle_products():
    rng = random.Random(SEED)
    pairs = [(pattern(rng, a), pattern(rng, w)) for a in range(64) for w in range(64)]
    pairs += [(a << 10 | f, w << 10 | g) for a in (0, 31, 32, 63) for f in CORNERS
              for w in (0, 1, 30, 31, 32, 63) for g in CORNERS]
    assert len(pairs) == 4096 + 16 * 24
    found = ask([f"multiply {x:x} {w:x}" for x, w in pairs])
    for (x, w), answer in zip(pairs, found, strict=True):
        assert answer == oracle.dot([x], [w]), f"{x:04x} * {w:04x}"


def test_oracle_sums():
    rng = random.Random(SEED)
    cases = []
    for i in range(1500):
        terms = tie(rng) if i % 3 == 0 else [(pattern(rng), pattern(rng)) for _ in range(rng.choice([2, 8, 32]))]
        if i % 3 == 1:  # finite, and mostly cancelled
            terms = [(x & 0xBFFF, w & 0xBFFF) for x, w in terms]
            terms += [(x ^ 0x8000, w) for x, w in terms[1:]]
        cases.append((0 if i % 2 else rng.randrange(32), terms))
    found = ask([f"dot {b} " + " ".join(f"{x:x} {w:x}" for x, w in terms) for b, terms in cases])
    for (b, terms), answer in zip(cases, found, strict=True):
        assert answer == oracle.dot(*zip(*terms), exponent=b), (b, terms)
    finite = [bits & 0x7FFF for bits, _ in found if bits & 0x7FFF < 0x7C00]
    assert len(finite) > 500 and len(set(finite)) > 300


def test_oracle_outputs():
    rng = random.Random(SEED)
    lines, wanted = [], []
    for i in range(2000):
        s = rng.randrange(-1 << 40, 1 << 40) >> rng.randrange(40)
        flags = [rng.random() < 0.05 for _ in range(3)]
        scale, row = pattern(rng), pattern(rng) if i % 2 else 0x3C00
        # The C++ oracle keeps both terms in 128 bits: a bias only next to plain scales.
        bias = 0 if i % 4 else pattern(rng)
        scale, row, b = (scale, row, rng.randrange(32)) if i % 4 else (0x3C00, 0x3C00, 0)
        out = "fp32" if rng.random() < 0.5 else "fp16"
        total = oracle.add([Fraction(s, 1 << 24)] + [value for value, flag in zip(
            (oracle.NAN, oracle.INF, -oracle.INF), flags, strict=True) if flag])
        lines.append(f"output {b} {s} {' '.join(str(int(f)) for f in flags)} {scale:x} {row:x} {bias:x} "
                     f"{int(out == 'fp32')}")
        wanted.append(oracle.finish(total, scale, row, bias, b, out))
    found = ask(lines)
    for line, answer, expected in zip(lines, found, wanted, strict=True):
        assert answer == expected, line


# The command ------------------------------------------------------------------------------------

@pytest.mark.parametrize("sample", [0, 3, -2, 1 << 17])
def test_bad_sample(sample):
    with pytest.raises(InputError, match=f"sample = {sample} must be a power of two from 1"):
        exhaustive.jobs(sample)


def test_complete_run_has_every_pair():
    assert sum(job.expected for job in by_kind("fp16_pairs")) == 1 << 32
    assert 1024 * 64 % (LANES * exhaustive.PARTS) == 0


@pytest.mark.parametrize("compared, wanted", [(9, "compared 9 results instead of 10"), (11, "compared 11 results")])
def test_too_few_or_too_many_comparisons_are_an_error(monkeypatch, tmp_path, compared, wanted):
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho count mismatches 0\necho count compared {compared}\n")
    program.chmod(0o755)
    monkeypatch.setattr(exhaustive, "build", lambda name, **_: program)
    with pytest.raises(RuntimeError, match=wanted):
        exhaustive.run([exhaustive.Job("fp16_pairs", "pairs", (), 10, exact=True)])


def test_a_program_that_dies_is_an_error(monkeypatch, tmp_path):
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho count mismatches 0\necho count compared 10\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setattr(exhaustive, "build", lambda name, **_: program)
    with pytest.raises(RuntimeError, match="ended with code 3"):
        exhaustive.run([exhaustive.Job("fp16_pairs", "pairs", (), 10)])


@pytest.mark.parametrize("mismatches", [0, 2])
def test_command_reports(monkeypatch, tmp_path, mismatches):
    written = {}

    def run(jobs, **_):
        found = {}
        for job in jobs:
            found.setdefault(job.kind, exhaustive.Outcome()).add(exhaustive.Outcome(job.expected, seconds=1.0))
        if mismatches:
            found["fp16_pairs"].mismatches, found["fp16_pairs"].shown = mismatches, ["FP16 0x3C00 * 0x3C00: wrong"]
        return found

    def write_report(name, figures, **_):
        written[name] = figures
        return tmp_path / f"{name}.json"

    monkeypatch.setattr(command.exhaustive, "run", run)
    monkeypatch.setattr(command, "write_report", write_report)
    app = typer.Typer()
    app.callback()(lambda: None)
    command.register(app)
    result = CliRunner().invoke(app, ["exhaustive"])
    assert result.exit_code == (1 if mismatches else 0)
    assert ("FP16 0x3C00 * 0x3C00: wrong" in result.output) == bool(mismatches)
    figures = written["exhaustive"]
    assert (figures["fp16_pairs"], figures["fp16_mismatches"]) == (1 << 32, mismatches)
    assert figures["int8_pairs"] == 4 << 16
    assert CliRunner().invoke(app, ["exhaustive", "--sample", "256"]).exit_code == (1 if mismatches else 0)
    assert set(written) == {"exhaustive", "exhaustive_sample"}
