# hint: follows from the smallest gradient
def fraction_to_zero(exponents, counts, scale):
    lost = exponents + math.log2(scale) < -25
    return (counts[lost].sum() / counts.sum()).item()


def largest_safe_scale(exponents, counts):
    return 2.0 ** (-25 - exponents[counts > 0].min().item())
