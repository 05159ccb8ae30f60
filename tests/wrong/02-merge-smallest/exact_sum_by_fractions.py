# hint: This is the exact sum, rounded once
from fractions import Fraction


def merge_smallest(values):
    total = Fraction(0)
    for value in sorted(values):
        total += Fraction(value)
    return float(total)
