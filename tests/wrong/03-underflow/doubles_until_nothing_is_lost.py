# hint: follows from the smallest gradient
def fraction_to_zero(exponents, counts, scale):
    lost = exponents + math.log2(scale) < -25
    return (counts[lost].sum() / counts.sum()).item()
def largest_safe_scale(exponents, counts):
    scale = 1.0
    while fraction_to_zero(exponents, counts, scale) > 0:
        scale *= 2
    return scale
