def fraction_to_zero(exponents, counts, scale):
    values = 1.4 * torch.pow(2.0, exponents.double()) * scale
    return float(counts[values.half() == 0].sum()) / float(counts.sum())


def largest_safe_scale(exponents, counts):
    scale = 2.0**80
    top = 1.9999 * torch.pow(2.0, exponents[counts != 0].double())
    while (top * scale).half().isinf().any():
        scale /= 2
    return scale
