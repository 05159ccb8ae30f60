# hint: that is the natural logarithm
def fraction_to_zero(exponents, counts, scale):
    return counts[exponents + math.log(scale) < -25].sum().item() / counts.sum().item()
def largest_safe_scale(exponents, counts):
    return 2.0 ** (14 - exponents[counts > 0].max().item())
