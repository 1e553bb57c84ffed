"""A real model's text, its linear layers on the simulated RTL, every number compared with the golden model."""

import time
from dataclasses import dataclass, field

from ..llm.checked import different
from ..llm.decoder import Decoder
from ..llm.generate import choose_token
from ..llm.linears import VqLinears
from ..llm.tally import Tally

__all__ = ["Demo", "PROMPT", "SYSTEM", "Step"]

PROMPT = "What is gravity?"
SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"


@dataclass
class Step:
    """One token through the RTL.

    Attributes
    ----------
    token : int
        That went in.
    tally : Tally
        What the RTL did for it.
    wall_s, golden_wall_s : float
        On the simulated RTL, and on the golden model.
    comparisons, mismatches : int
        Outputs of linear layers, hidden states and scores compared with the golden model's, bit by bit.
    wrong : list[str]
        What differed, in the order in which it was computed.
    """

    token: int
    tally: Tally
    wall_s: float = 0.0
    golden_wall_s: float = 0.0
    comparisons: int = 0
    mismatches: int = 0
    wrong: list = field(default_factory=list)


class Demo:
    """A text whose prompt is read by the golden model, and whose further tokens the RTL computes beside it.

    Both keep a cache and hidden states of their own; nothing flows from one to the other after the prompt.

    Parameters
    ----------
    weights : FolderWeights
    rtl, golden : Accelerator

    Attributes
    ----------
    steps : list[Step]
    """

    def __init__(self, weights, rtl, golden):
        self.weights, self.steps = weights, []
        self.linears = VqLinears(weights, rtl)
        self._golden, self._rtl = Decoder(weights, VqLinears(weights, golden)), Decoder(weights, self.linears)

    def load(self):
        """Uploads all layers to the RTL's memory; yields the name of each when it is there."""
        yield from self.linears.load()

    def read(self, prompt):
        """Puts the tokens ``prompt`` through the golden model; returns the token after them."""
        cache = self._golden.new_cache()
        hidden = self._golden.hidden(prompt, cache)
        self._caches = cache, cache.copy()
        return choose_token(self._golden.logits(hidden[-1:])[0], 0, None)

    def step(self, token, progress=lambda name: None):
        """Puts ``token`` through both, and compares; returns the token after it, as the RTL has it.

        ``progress(name)`` is called for every linear layer and block that the RTL has done.
        """
        before, step = self.linears.tally.copy(), Step(token, Tally())
        wanted, logits, step.golden_wall_s = self._watch(self._golden, token, self._caches[0])
        made, found, step.wall_s = self._watch(self._rtl, token, self._caches[1], progress)
        step.tally = self.linears.tally.since(before)
        made["logits"], wanted["logits"] = found, logits
        for name in [*wanted, *(made.keys() - wanted.keys())]:
            count = different(made[name], wanted[name]) if name in made and name in wanted else 1
            step.comparisons += wanted[name].size if name in wanted else 1
            step.mismatches += count
            step.wrong += [name] * bool(count)
        self.steps.append(step)
        return choose_token(found[0], 0, None)

    @staticmethod
    def _watch(decoder, token, cache, progress=lambda name: None):
        """``({name: values}, logits, wall seconds)`` of one token."""
        seen, start = {}, time.perf_counter()

        def watch(name, values):
            seen[name] = values.copy()
            progress(name)

        hidden = decoder.hidden([token], cache, watch)
        return seen, decoder.logits(hidden), time.perf_counter() - start

    def figures(self, mhz):
        """For the report."""
        count = len(self.steps)
        tally = Tally()
        for step in self.steps:
            tally.add_tally(step.tally)
        cycles = tally.cycles / count
        return {
            "tokens_on_rtl": count, "linears_on_rtl": tally.linears, "runs": tally.runs,
            "comparisons": sum(step.comparisons for step in self.steps),
            "mismatches": sum(step.mismatches for step in self.steps),
            "first_mismatch": next((step.wrong[0] for step in self.steps if step.wrong), None),
            "cycles_per_token": cycles, "roofline_cycles_per_token": tally.roofline_cycles / count,
            "utilisation": tally.roofline_cycles / tally.cycles if tally.cycles else None,
            "clock_mhz": mhz, "projected_tokens_per_s": mhz * 1e6 / cycles if cycles else None,
            "wall_s_per_token": sum(step.wall_s for step in self.steps) / count,
            "golden_wall_s_per_token": sum(step.golden_wall_s for step in self.steps) / count,
            "sticky": tally.sticky, "tokens": [{"token": step.token, "cycles": step.tally.cycles,
                                                "roofline_cycles": step.tally.roofline_cycles, "wall_s": step.wall_s,
                                                "comparisons": step.comparisons, "mismatches": step.mismatches}
                                               for step in self.steps]}
