# hint: the small ones are not
def encode(x, fmt):
    bias = 2 ** (fmt.exponent_bits - 1) - 1
    all_ones = 2 ** (fmt.total_bits - 1) - 1
    infinity = all_ones - 2**fmt.mantissa_bits + 1
    size = x.double().abs().nan_to_num(nan=0.0).clamp(2.0**-200, 2.0**200)
    exponent = torch.frexp(size)[1].double() - 1
    ulp = torch.pow(2.0, exponent - fmt.mantissa_bits)
    steps = torch.round(size / ulp)
    bits = steps.long() + ((exponent.long() + bias - 1) << fmt.mantissa_bits)
    bits = bits.clamp(max=all_ones - 1 if fmt.finite_only else infinity)
    bits = torch.where(x.isnan(), all_ones, bits)
    return bits | (torch.signbit(x).long() << (fmt.total_bits - 1))
