# a plain Python loop with frexp and round
def encode_one(value, fmt):
    bias = 2 ** (fmt.exponent_bits - 1) - 1
    sign = 2 ** (fmt.total_bits - 1) if math.copysign(1, value) < 0 else 0
    last = 2 ** (fmt.total_bits - 1) - 1
    if value != value:
        return last
    limit = last - 1 if fmt.finite_only else last - 2**fmt.mantissa_bits + 1
    if math.isinf(value):
        return sign + limit
    value = abs(value)
    exponent = max(math.frexp(value)[1] - 1, 1 - bias) if value else 1 - bias
    steps = round(math.ldexp(value, fmt.mantissa_bits - exponent))
    return sign + min(steps + (exponent + bias - 1) * 2**fmt.mantissa_bits, limit)


def encode(x, fmt):
    return torch.tensor([encode_one(value, fmt) for value in x.flatten().tolist()]).reshape(x.shape)
