# hint: That is the exponent of the scale
def fraction_to_zero(exponents, counts, scale):
    return counts[exponents + math.log2(scale) < -25].sum().item() / counts.sum().item()
def largest_safe_scale(exponents, counts):
    return float(14 - exponents[counts > 0].max().item())
