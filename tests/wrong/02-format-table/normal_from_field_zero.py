# hint: exponent field of 1
def format_limits(fmt):
    bias = 2 ** (fmt.exponent_bits - 1) - 1
    eps = 2.0**-fmt.mantissa_bits
    largest = (2 - 2 * eps) * 2.0 ** (bias + 1) if fmt.finite_only else (2 - eps) * 2.0**bias
    normal = 2.0**-bias
    return {"eps": eps, "max": largest, "smallest_normal": normal, "smallest_subnormal": normal * eps}
