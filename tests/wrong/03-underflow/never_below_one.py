# hint: need a scale below 1
def fraction_to_zero(exponents, counts, scale):
    return counts[exponents + math.log2(scale) < -25].sum().item() / counts.sum().item()
def largest_safe_scale(exponents, counts):
    return max(1.0, 2.0 ** (14 - exponents[counts > 0].max().item()))
