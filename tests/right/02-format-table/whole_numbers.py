# whole numbers
def format_limits(fmt):
    E, M = fmt.exponent_bits, fmt.mantissa_bits
    bias = 2 ** (E - 1) - 1
    top = 2**E - 2 + (1 if fmt.finite_only else 0)
    full = 2 ** (M + 1) - 1 - (1 if fmt.finite_only else 0)
    return {
        "eps": 2**-M,
        "max": full * 2 ** (top - bias - M),
        "smallest_normal": 2 ** (1 - bias),
        "smallest_subnormal": 2 ** (1 - bias - M),
    }
