# one number at a time, in Python
def one_value(pattern, fmt):
    exponent, mantissa = divmod(pattern % 2 ** (fmt.total_bits - 1), 2**fmt.mantissa_bits)
    sign = -1.0 if pattern >= 2 ** (fmt.total_bits - 1) else 1.0
    if exponent == 2**fmt.exponent_bits - 1:
        if fmt.finite_only:
            if mantissa == 2**fmt.mantissa_bits - 1:
                return math.nan
        else:
            return sign * math.inf if mantissa == 0 else math.nan
    if exponent > 0:
        mantissa += 2**fmt.mantissa_bits
    return sign * math.ldexp(mantissa, max(exponent, 1) - 2 ** (fmt.exponent_bits - 1) + 1 - fmt.mantissa_bits)


def decode(bits, fmt):
    print("decoding", fmt.name)
    values = [one_value(pattern, fmt) for pattern in bits.flatten().tolist()]
    return torch.tensor(values, dtype=torch.float64).reshape(bits.shape)
