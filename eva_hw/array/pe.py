"""The mixed-precision processing element: four INT8 PEs, or one exact FP16 PE."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib.wiring import In, Out

from ..emit import Block
from .fp16 import LOW_BITS, Operand, special_product

__all__ = ["LIMB_BITS", "LIMBS", "MixedPe", "NAN_LSB", "NEGATIVE_INF_LSB", "POSITIVE_INF_LSB"]

#: Bits of one limb of the FP16 sum, which is also one INT8 column's sum.
LIMB_BITS = 32
#: Limbs of the FP16 sum: a 96-bit integer in units of 2^-48.
LIMBS = 3
#: Where the counts of special products (8 bits each) lie in the fourth 32-bit word.
NAN_LSB, POSITIVE_INF_LSB, NEGATIVE_INF_LSB = 16, 8, 0

#: Width of a 22-bit product shifted by 0 to 31.
_SHIFTED_BITS = 22 + LIMB_BITS - 1


class MixedPe(Block):
    """Multiplies an activation that moves right with a stationary operand, and adds to sums that move down.

    INT8: four signed products ``i_a[7:0] * active[8k+7:8k]``, each added to its own 32-bit sum (modulo 2^32).
    FP16: one product ``i_a * active[15:0]``, added exactly to one 96-bit sum in units of 2^-48, held as three limbs
    and the two carries that wait to enter limbs 1 and 2: its value is
    ``p[31:0] + 2^32 * (p[63:32] + carry[0]) + 2^64 * (p[95:64] + carry[1])`` modulo 2^96, in two's complement.
    NaN and infinite products add 0 there and are counted in ``p[127:96]``.

    Members
    -------
    i_fp16 : static while data are in flight.
    i_a, i_swap -> o_a, o_swap : to the right, 1 cycle. ``i_swap`` copies the shadow operand to the active one at
        the end of its cycle, and so comes with the first activation that uses it.
    i_p, i_carry -> o_p, o_carry : downwards; ``i_p`` joins 3 cycles after its ``i_a``, ``o_p`` shows 4 cycles after.
    ld_en, ld_data : writes the shadow operand at the end of the cycle; in the cycle of a swap, the swap still
        takes the old one.
    """

    #: Cycles from ``i_a`` to ``o_p``.
    latency = 4
    #: Cycles from ``i_a`` to the ``i_p`` and ``i_carry`` that its product is added to.
    sum_delay = 3

    module_name = "eva_mixed_pe"

    def __init__(self):
        super().__init__({
            "i_fp16": In(1), "i_a": In(16), "i_swap": In(1), "i_p": In(128), "i_carry": In(2),
            "ld_en": In(1), "ld_data": In(32),
            "o_a": Out(16), "o_swap": Out(1), "o_p": Out(128), "o_carry": Out(2),
        })

    def elaborate(self, platform):
        m = Module()
        # The mode as the later stages see it: one wire to all of a PE would be among the slowest.
        self._late_fp16 = Signal(name="late_fp16", reset_less=True)
        m.d.sync += self._late_fp16.eq(self.i_fp16)
        a, w = self._operands(m)
        products, shift, flags = self._multiply(m, *a, *w)
        addends = self._align(m, products, shift, flags)
        self._add(m, addends)
        return m

    def _operands(self, m):
        """Registers of the operands, and the way to the right: activation and active operand, each with whether it is
        a normal FP16 number (the significand's top bit, which would come late to the multipliers)."""
        shadow = Signal(32, reset_less=True)
        active = Signal(32, reset_less=True)
        active_normal = Signal(reset_less=True)
        a = Signal(16, reset_less=True)
        a_normal = Signal(reset_less=True)
        swap = Signal()
        with m.If(self.ld_en):
            m.d.sync += shadow.eq(self.ld_data)
        with m.If(self.i_swap):
            m.d.sync += [active.eq(shadow), active_normal.eq(shadow[10:15].any())]
        m.d.sync += [a.eq(self.i_a), a_normal.eq(self.i_a[10:15].any()), swap.eq(self.i_swap)]
        m.d.comb += [self.o_a.eq(a), self.o_swap.eq(swap)]
        return (a, a_normal), (active, active_normal)

    def _multiply(self, m, activation, a_normal, active, w_normal):
        """Stage 2: four products (16 bits each), the FP16 product's shift (0 to 58), and its flags.

        Multiplier 0 takes both low parts and multiplier 3 both high ones: the low parts sit where the INT8
        operands of multiplier 0 do, which saves multiplexers.
        """
        a, w = Operand(m, "a", activation, a_normal), Operand(m, "w", active[:16], w_normal)
        pairs = [(a.low, w.low), (a.low, w.high), (a.high, w.low), (a.high, w.high)]
        products = [Signal(signed(16), name=f"product_{k}", reset_less=True) for k in range(4)]
        for k, (part_a, part_w) in enumerate(pairs):
            factor_a, factor_w = Signal(signed(8), name=f"factor_a_{k}"), Signal(signed(8), name=f"factor_w_{k}")
            m.d.comb += [
                factor_a.eq(Mux(self.i_fp16, part_a, activation[:8])),
                factor_w.eq(Mux(self.i_fp16, part_w, active.word_select(k, 8))),
            ]
            m.d.sync += products[k].eq(factor_a * factor_w)
        shift = Signal(6, reset_less=True)
        negative = Signal(reset_less=True)
        nan = Signal(reset_less=True)
        positive_inf = Signal(reset_less=True)
        negative_inf = Signal(reset_less=True)
        is_nan, is_inf = special_product(m, a, w)
        sign = a.sign ^ w.sign
        m.d.sync += [
            shift.eq(a.shift + w.shift), negative.eq(sign & ~is_nan & ~is_inf),
            nan.eq(is_nan), positive_inf.eq(is_inf & ~sign), negative_inf.eq(is_inf & sign),
        ]
        return products, shift, (negative, nan, positive_inf, negative_inf)

    def _align(self, m, products, shift, flags):
        """Stage 3: the FP16 product, shifted within 32 places. Shares its registers with the INT8 products.

        Returns the four 32-bit addends, and the carry into limb 0, as stage 4 uses them.
        """
        low_low, low_high, high_low, high_high = products
        middle = Signal(12)
        product = Signal(22)
        shifted = Signal(_SHIFTED_BITS)
        special = flags[1] | flags[2] | flags[3]
        m.d.comb += [
            middle.eq(low_high[:11] + high_low[:11]),
            product.eq(Cat(low_low[:2 * LOW_BITS], high_high[:8]) + (middle << LOW_BITS)),
            shifted.eq(Mux(special, 0, product) << shift[:5]),
        ]
        aligned = Signal(64, reset_less=True)
        m.d.sync += aligned.eq(Mux(self._late_fp16, Cat(shifted, shift[5], *flags), Cat(*products)))

        low, high = aligned[:LIMB_BITS], aligned[LIMB_BITS:_SHIFTED_BITS]
        up, negative, nan, positive_inf, negative_inf = aligned[_SHIFTED_BITS:_SHIFTED_BITS + 5]
        limbs = [Mux(up, 0, low), Mux(up, low, high), Mux(up, high, 0)]
        counts = Cat(negative_inf, Const(0, 7), positive_inf, Const(0, 7), nan)
        # A negative product is added in ones' complement; the missing one is the carry into limb 0.
        fp16 = [limb ^ negative.replicate(LIMB_BITS) for limb in limbs] + [counts]
        addends = [Signal(LIMB_BITS, name=f"addend_{k}") for k in range(4)]
        for k, addend in enumerate(addends):
            m.d.comb += addend.eq(Mux(self._late_fp16, fp16[k], _extended(aligned.word_select(k, 16))))
        return addends, self._late_fp16 & negative

    def _add(self, m, addends):
        """Stage 4: four 32-bit adders. Carries go down to the next row, not on to the next limb."""
        addends, negative = addends
        sums = Signal(128, reset_less=True)
        carries = Signal(2, reset_less=True)
        for k, carry_in in enumerate([negative, self.i_carry[0], self.i_carry[1]]):
            # One adder with a carry-in, in a form that synthesis cannot take for two.
            total = Signal(LIMB_BITS + 2, name=f"total_{k}")
            m.d.comb += total.eq(Cat(Const(1, 1), self.i_p.word_select(k, LIMB_BITS)) + Cat(carry_in, addends[k]))
            m.d.sync += sums.word_select(k, LIMB_BITS).eq(total[1:LIMB_BITS + 1])
            if k < LIMBS - 1:
                m.d.sync += carries[k].eq(total[LIMB_BITS + 1] & self._late_fp16)
        m.d.sync += sums.word_select(3, LIMB_BITS).eq(self.i_p.word_select(3, LIMB_BITS) + addends[3])
        m.d.comb += [self.o_p.eq(sums), self.o_carry.eq(carries)]


def _extended(value):
    """16 signed bits as 32."""
    return Cat(value, value[15].replicate(LIMB_BITS - 16))
