"""Lab 02: a floating-point format as a case, for the three exercises on formats."""

from __future__ import annotations

from dataclasses import dataclass

from labkit.formats import FloatFormat
from labkit.spec import Case

E3M2 = FloatFormat("e3m2", 3, 2)
"""A made-up format of 64 patterns, small enough to be written out on paper."""


@dataclass(frozen=True)
class FormatCase(Case):
    """A format, spelled out in plain data."""

    format: str
    exponent_bits: int
    mantissa_bits: int
    finite_only: bool = False

    @classmethod
    def of(cls, fmt: FloatFormat, **more) -> FormatCase:
        """The case of a FloatFormat."""
        return cls(fmt.name, fmt.exponent_bits, fmt.mantissa_bits, fmt.finite_only, **more)

    @property
    def fmt(self) -> FloatFormat:
        """The format as answers receive it."""
        return FloatFormat(self.format, self.exponent_bits, self.mantissa_bits, self.finite_only)
