# reads the limits off decoded patterns, as tensors
def value(pattern, fmt):
    exponent, mantissa = divmod(pattern, 2**fmt.mantissa_bits)
    bias = 2 ** (fmt.exponent_bits - 1) - 1
    if exponent == 0:
        return torch.tensor(mantissa * 2.0 ** (1 - bias - fmt.mantissa_bits), dtype=torch.float64)
    return torch.tensor((1 + mantissa / 2**fmt.mantissa_bits) * 2.0 ** (exponent - bias), dtype=torch.float64)


def format_limits(fmt):
    one = (2 ** (fmt.exponent_bits - 1) - 1) << fmt.mantissa_bits
    infinity = (2**fmt.exponent_bits - 1) << fmt.mantissa_bits
    last = 2 ** (fmt.total_bits - 1) - 2 if fmt.finite_only else infinity - 1
    return dict(
        smallest_subnormal=value(1, fmt),
        smallest_normal=value(2**fmt.mantissa_bits, fmt),
        max=value(last, fmt),
        eps=value(one + 1, fmt) - value(one, fmt),
    )
