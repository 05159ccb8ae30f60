# hint: largest number of an integer type
def format_limits(fmt):
    E, M = fmt.exponent_bits, fmt.mantissa_bits
    bias = 2 ** (E - 1) - 1
    eps = 2.0**-M
    return {
        "eps": eps,
        "max": 2.0 ** (bias + 1) - 1,
        "smallest_normal": 2.0 ** (1 - bias),
        "smallest_subnormal": 2.0 ** (1 - bias) * eps,
    }
