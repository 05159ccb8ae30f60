# hint: One bin too few is lost
def fraction_to_zero(exponents, counts, scale):
    return counts[exponents + math.log2(scale) < -26].sum().item() / counts.sum().item()
def largest_safe_scale(exponents, counts):
    return 2.0 ** (14 - exponents[counts > 0].max().item())
