# hint: logarithm to the base 10
def fraction_to_zero(exponents, counts, scale):
    return (counts[exponents + math.log10(scale) < -25].sum() / counts.sum()).item()
def largest_safe_scale(exponents, counts):
    return 2.0 ** (14 - exponents[counts > 0].max().item())
