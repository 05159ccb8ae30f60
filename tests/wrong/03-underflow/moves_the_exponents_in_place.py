# hint: Work on a copy
def fraction_to_zero(exponents, counts, scale):
    exponents += int(math.log2(scale))
    return counts[exponents < -25].sum().item() / counts.sum().item()
def largest_safe_scale(exponents, counts):
    return 2.0 ** (14 - exponents[counts > 0].max().item())
