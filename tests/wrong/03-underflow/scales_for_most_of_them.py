# hint: the largest gradients become infinite
def fraction_to_zero(exponents, counts, scale):
    lost = exponents + math.log2(scale) < -25
    return (counts[lost].sum() / counts.sum()).item()


def largest_safe_scale(exponents, counts):
    common = exponents[counts > counts.sum() / 1000]
    return 2.0 ** (14 - common.max().item())
