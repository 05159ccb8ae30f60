# hint: Subnormal numbers are not lost
def fraction_to_zero(exponents, counts, scale):
    shifted = exponents + math.log2(scale)
    return (counts[shifted <= -14].sum() / counts.sum()).item()
def largest_safe_scale(exponents, counts):
    return 2.0 ** (14 - exponents[counts > 0].max().item())
