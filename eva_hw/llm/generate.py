"""Text generation: the prompt at once, then token by token, and what it all cost."""

import time
from dataclasses import dataclass, field

import numpy as np

from ..errors import Problems
from .tally import Tally

__all__ = ["Cost", "Generator", "check_request", "choose_token"]


def choose_token(logits, temperature, rng):
    """The next token from its scores [vocabulary]: the best at temperature 0, else drawn with ``rng``."""
    if not temperature:
        return int(np.argmax(logits))
    scores = (logits.astype(np.float64) - logits.max()) / temperature
    weights = np.exp(scores)
    return int(rng.choice(len(weights), p=weights / weights.sum()))


def check_request(settings, prompt, count, temperature=0.0, seed=0):
    """Raises InputError naming everything for which :meth:`Generator.tokens` would."""
    problems = Problems("generate")
    problems.check(count > 0, f"tokens = {count} must be at least 1")
    problems.check(0 <= temperature <= 100, f"temperature = {temperature} must be from 0 to 100")
    problems.check(seed >= 0, f"seed = {seed} must be at least 0")
    problems.check(len(prompt) + max(count, 0) <= settings.positions,
                   f"{len(prompt)} tokens of the prompt and {count} new ones must be at most the "
                   f"{settings.positions} that the model was made for")
    problems.raise_if_any()


@dataclass
class Cost:
    """What a stretch of a text took.

    Attributes
    ----------
    tokens : int
        That went through the model.
    wall_s : float
    tally : Tally
    """

    tokens: int = 0
    wall_s: float = 0.0
    tally: Tally = field(default_factory=Tally)

    @property
    def cycles_per_token(self):
        """None on a backend that has no time."""
        return self.tally.cycles / self.tokens if self.tally.cycles else None

    @property
    def roofline_cycles_per_token(self):
        return self.tally.roofline_cycles / self.tokens if self.tokens else None

    def tokens_per_s(self, mhz):
        """Tokens per second of an accelerator with that clock, its host taking no time; None without cycles."""
        return mhz * 1e6 / self.cycles_per_token if self.tally.cycles else None


class Generator:
    """Continues texts.

    Parameters
    ----------
    decoder : Decoder
        For the tokens that are generated.
    prefill : Decoder or None
        For the prompt, of the same weights; default ``decoder``.
    end_tokens : set[int]
        Tokens that end the text.
    chunk : int
        Prompt tokens that are computed at once.

    Attributes
    ----------
    prompt_cost, cost : Cost
        Of the last text's prompt, and of the tokens after it.
    """

    def __init__(self, decoder, prefill=None, end_tokens=(), chunk=64):
        self.decoder, self.prefill, self.end_tokens = decoder, prefill or decoder, set(end_tokens)
        self.chunk = chunk
        self.prompt_cost, self.cost = Cost(), Cost()

    def read(self, prompt, cache, progress=lambda done: None):
        """Puts the tokens ``prompt`` through the model; scores of the token after them. ``progress(tokens done)``."""
        self.prompt_cost = Cost()
        for first in range(0, len(prompt), self.chunk):
            part = prompt[first:first + self.chunk]
            hidden = self._step(self.prefill, part, cache, self.prompt_cost)
            progress(first + len(part))
        return self.decoder.logits(hidden[-1:])[0]

    def tokens(self, prompt, count, *, temperature=0.0, seed=0, progress=lambda done: None):
        """Yields at most ``count`` tokens after the tokens ``prompt``; ends before a token that ends the text.

        Raises
        ------
        InputError
            If the prompt and the new tokens are more than the model was made for, or an argument is out of range.
        """
        check_request(self.decoder.settings, prompt, count, temperature, seed)
        return self._tokens(prompt, count, temperature, np.random.default_rng(seed), progress)

    def _tokens(self, prompt, count, temperature, rng, progress):
        self.cost, cache = Cost(), self.decoder.new_cache()
        logits = self.read(prompt, cache, progress)
        for left in reversed(range(count)):
            token = choose_token(logits, temperature, rng)
            if token in self.end_tokens:
                return
            yield token
            if left:
                logits = self.decoder.logits(self._step(self.decoder, [token], cache, self.cost))[0]

    @staticmethod
    def _step(decoder, tokens, cache, cost):
        """Hidden states of ``tokens``; what they took is added to ``cost``."""
        tally = getattr(decoder.linears, "tally", Tally())
        before, start = tally.copy(), time.perf_counter()
        hidden = decoder.hidden(tokens, cache)
        cost.wall_s += time.perf_counter() - start
        cost.tokens += len(tokens)
        cost.tally.add_tally(tally.since(before))
        return hidden
