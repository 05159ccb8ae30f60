# hint: A scale below 1 moves the bins to the left
def fraction_to_zero(exponents, counts, scale):
    return counts[exponents + abs(math.log2(scale)) < -25].sum().item() / counts.sum().item()
def largest_safe_scale(exponents, counts):
    return 2.0 ** (14 - exponents[counts > 0].max().item())
