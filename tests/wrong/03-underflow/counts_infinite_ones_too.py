# hint: become infinite are counted
def fraction_to_zero(exponents, counts, scale):
    scaled = exponents + math.log2(scale)
    lost = (scaled < -25) | (scaled > 15)
    return (counts[lost].sum() / counts.sum()).item()


def largest_safe_scale(exponents, counts):
    return 2.0 ** (14 - exponents[counts > 0].max().item())
