# integers and numpy scalars where they are exact
import numpy as np


def format_limits(fmt):
    half = 1 << (fmt.exponent_bits - 1)
    steps = (1 << (fmt.mantissa_bits + 1)) - (2 if fmt.finite_only else 1)
    top = np.ldexp(np.float64(steps), (half if fmt.finite_only else half - 1) - fmt.mantissa_bits)
    return {
        "max": int(top) if top >= 1 and top == int(top) else top,
        "eps": np.ldexp(1.0, -fmt.mantissa_bits),
        "smallest_normal": np.ldexp(1.0, 2 - half),
        "smallest_subnormal": np.ldexp(1.0, 2 - half - fmt.mantissa_bits),
    }
