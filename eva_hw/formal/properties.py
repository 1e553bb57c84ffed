"""What is proven: each proof's hardware, property module, and method."""

from dataclasses import dataclass, field

from ..array.fp16 import LOW_BITS
from ..array.pe import MixedPe
from ..dma import FlopQueue
from ..emit import Block
from ..feed import BeatFifo
from ..gemm.words import WordStream

__all__ = ["Proof", "proofs"]


@dataclass(frozen=True)
class Proof:
    """One property module around one emitted block.

    Attributes
    ----------
    name : str
    block : Block
        The hardware.
    wrapper : str
        ``formal_<wrapper>`` in ``sim/formal/<wrapper>.sv``.
    parameters : dict[str, int]
        Of the wrapper.
    state : dict[str, tuple[int, tuple[str, ...]]]
        Wires of the hardware that the wrapper sees, beside its ports: port -> (bits, wires, lowest
        last). None: the register that has no name.
    k : int
        Steps of the induction: any k steps without a violation are followed by one without.
    alone : bool
        The step needs no earlier assertions: the registers forget within k cycles. Gives smaller formulas.
    depth : int
        Cycles from the reset on in which a counterexample is searched before the induction.
    """

    name: str
    block: Block
    wrapper: str
    parameters: dict = field(default_factory=dict)
    state: dict = field(default_factory=dict)
    k: int = 1
    alone: bool = False
    depth: int = 8

    @property
    def dut(self):
        """The Verilog module that is proven."""
        return self.block.module_name


_PE_STATE = {"product": (22, ("product",)), "active": (32, ("active",)),
             "normal": (1, ("active_normal",)), "partial": (64, ("product_3", "product_2", "product_1", "product_0"))}


def _pe():
    yield Proof("fp16_significand_product", MixedPe(), "pe", {"PROPERTY": 0, "LOW": LOW_BITS}, _PE_STATE,
                k=2, alone=True, depth=0)
    yield Proof("fp16_sum_step", MixedPe(), "pe", {"PROPERTY": 1}, _PE_STATE, k=4, alone=True, depth=0)
    yield Proof("int8_sum_step", MixedPe(), "pe", {"PROPERTY": 2}, _PE_STATE, k=4, alone=True, depth=0)
    yield Proof("operand_kept", MixedPe(), "pe", {"PROPERTY": 3}, _PE_STATE)


def _entries(name, depth):
    return tuple(name.format(i) for i in reversed(range(depth)))


def _queue(depth, width):
    block = FlopQueue(depth, width)
    state = {"used": (depth, ("used",)), "entries": (depth * width, _entries("entry{}", depth))}
    return Proof(block.module_name, block, "queue", {"DEPTH": depth, "WIDTH": width}, state)


def _beat_fifo(depth, width):
    block = BeatFifo(depth, width)
    size = {"DEPTH": depth, "WIDTH": width}
    if block.latency == 1:
        state = {"used": (depth, ("used",)), "entries": (depth * width, _entries("slot{}", depth))}
        return Proof(block.module_name, block, "beat_fifo", {**size, "IN_SRAM": 0}, state)
    at, level = (depth - 1).bit_length(), depth.bit_length()
    state = {
        "write_at": (at, ("sram_w_addr",)), "read_at": (at, ("sram_r_addr",)), "level": (level, ("level",)),
        "nonempty": (1, ("nonempty",)), "fetched": (1, ("fetched",)), "read": (1, ("sram_r_en",)),
        **{name: (1, (name,)) for name in ("full", "front", "back")},
        **{name: (width, (name,)) for name in ("payload_0", "payload_1")},
        "word": (width, ("sram_r_data",)), "entries": (depth * width, _entries("sram.mem[{}]", depth)),
    }
    return Proof(block.module_name, block, "beat_fifo", {**size, "IN_SRAM": 1, "AT": at, "LEVEL": level}, state, k=2)


def _word_stream(beat, word):
    block = WordStream(beat, word)
    if word < beat:
        state = {"at": ((beat // word - 1).bit_length(), (None,))}
    else:
        state = {"have": ((word // beat - 1).bit_length(), (None,)), "before": (word - beat, ("kept",))}
    return Proof(block.module_name, block, "word_stream", {"BEAT": beat, "WORD": word}, state)


def proofs():
    """All proofs, the arithmetic first."""
    return [
        *_pe(),
        *(_queue(depth, width) for depth, width in ((1, 4), (2, 34), (3, 4), (4, 13), (16, 49))),
        *(_beat_fifo(depth, width) for depth, width in ((2, 8), (3, 8), (4, 32), (5, 4), (8, 8), (16, 32), (64, 64))),
        *(_word_stream(beat, word) for beat, word in ((8, 4), (32, 8), (1024, 32), (4, 8), (8, 32), (32, 256))),
    ]
