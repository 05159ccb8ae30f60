# hint: carry into the exponent is lost
def encode(x, fmt):
    M = fmt.mantissa_bits
    bias = 2 ** (fmt.exponent_bits - 1) - 1
    size = x.double().abs().nan_to_num(nan=0.0).clamp(2.0**-200, 2.0**200)
    p = (torch.frexp(size).exponent.long() - 1).clamp(min=1 - bias)
    fraction = size / 2.0 ** p.double()
    is_normal = fraction >= 1
    e = torch.where(is_normal, p + bias, 0)
    m = torch.round((fraction - is_normal.double()) * 2**M).long()
    bits = (e << M) | m
    all_ones = 2 ** (fmt.total_bits - 1) - 1
    bits = bits.clamp(max=all_ones - 1 if fmt.finite_only else all_ones + 1 - 2**M)
    bits = torch.where(x.isnan(), all_ones, bits)
    return bits | (torch.signbit(x).long() << (fmt.total_bits - 1))
