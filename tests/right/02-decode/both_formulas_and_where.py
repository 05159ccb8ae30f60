# works out both formulas for every pattern, and takes one of them
def decode(bits, fmt):
    bias = 2 ** (fmt.exponent_bits - 1) - 1
    top = 2**fmt.exponent_bits - 1
    sign = 1.0 - 2.0 * (bits >> (fmt.total_bits - 1)).double()
    exponent = (bits >> fmt.mantissa_bits) & top
    mantissa = bits & (2**fmt.mantissa_bits - 1)
    fraction = mantissa.double() / 2**fmt.mantissa_bits
    normal = (1 + fraction) * torch.pow(2.0, (exponent - bias).double())
    subnormal = fraction * 2.0 ** (1 - bias)
    value = torch.where(exponent == 0, subnormal, normal)
    if fmt.finite_only:
        value[(exponent == top) & (mantissa == 2**fmt.mantissa_bits - 1)] = math.nan
    else:
        value[(exponent == top) & (mantissa == 0)] = math.inf
        value[(exponent == top) & (mantissa != 0)] = math.nan
    return sign * value
