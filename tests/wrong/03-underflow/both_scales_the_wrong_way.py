# hint: The scale goes the wrong way
def fraction_to_zero(exponents, counts, scale):
    lost = exponents - math.log2(scale) < -25
    return (counts[lost].sum() / counts.sum()).item()
def largest_safe_scale(exponents, counts):
    return 2.0 ** (exponents[counts > 0].max().item() - 14)
