# hint: These are percentages
def fraction_to_zero(exponents, counts, scale):
    return 100 * counts[exponents + math.log2(scale) < -25].sum().item() / counts.sum().item()
def largest_safe_scale(exponents, counts):
    return 2.0 ** (14 - exponents[counts > 0].max().item())
