# hint: not of bins
def fraction_to_zero(exponents, counts, scale):
    return (counts[exponents + math.log2(scale) < -25].sum() / len(counts)).item()
def largest_safe_scale(exponents, counts):
    return 2.0 ** (14 - exponents[counts > 0].max().item())
