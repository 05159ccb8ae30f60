# hint: This rounds twice
def encode(x, fmt):
    exponent_bits, mantissa_bits = fmt.exponent_bits, fmt.mantissa_bits
    bias = 2 ** (exponent_bits - 1) - 1
    top = 2 ** (fmt.total_bits - 1) - 2 if fmt.finite_only else (2**exponent_bits - 1) << mantissa_bits
    start = x.half() if fmt.total_bits <= 8 else x
    size = start.double().abs().clamp(2.0**-200, 2.0**200)
    power = (torch.frexp(size).exponent - 1).clamp(min=1 - bias).long()
    steps = torch.round(size / 2.0 ** (power - mantissa_bits).double()).nan_to_num(0).long()
    patterns = (steps + ((power + bias - 1) << mantissa_bits)).clamp(max=top)
    patterns = torch.where(x.isnan(), 2 ** (fmt.total_bits - 1) - 1, patterns)
    return patterns + (torch.signbit(x).long() << (fmt.total_bits - 1))
