"""What a binary floating-point format is made of: how many bits each field has, and which rule its top values follow.

Only the description stands here. What the patterns mean (bias, subnormals, the largest value) is what lab 02 is about.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FloatFormat:
    """One sign bit, then `exponent_bits`, then `mantissa_bits`, from the most significant bit down.

    finite_only: the format has no infinities and, for each sign, a single NaN whose exponent and mantissa bits are all
    ones ("fn" in e4m3fn). Otherwise the IEEE 754 rule holds: an exponent of all ones means infinity or NaN.
    """

    name: str
    exponent_bits: int
    mantissa_bits: int
    finite_only: bool = False

    @property
    def total_bits(self) -> int:
        """The width of a pattern, sign included."""
        return 1 + self.exponent_bits + self.mantissa_bits


FP32 = FloatFormat("fp32", 8, 23)
TF32 = FloatFormat("tf32", 8, 10)
BF16 = FloatFormat("bf16", 8, 7)
FP16 = FloatFormat("fp16", 5, 10)
FP8_E5M2 = FloatFormat("e5m2", 5, 2)
FP8_E4M3FN = FloatFormat("e4m3fn", 4, 3, finite_only=True)

FORMATS = (FP32, TF32, BF16, FP16, FP8_E5M2, FP8_E4M3FN)
"""The formats that training uses, widest first."""
