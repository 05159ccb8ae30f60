# hint: This truncates
def encode(x, fmt):
    """Takes float32's own fields and cuts the mantissa off."""
    raw = x.view(torch.int32).long() & 0xFFFFFFFF
    sign, exponent, mantissa = raw >> 31, raw >> 23 & 0xFF, raw & 0x7FFFFF
    bias = 2 ** (fmt.exponent_bits - 1) - 1
    exponent = exponent - 127 + bias
    mantissa = mantissa >> (23 - fmt.mantissa_bits)
    top = 2**fmt.exponent_bits - 1
    bits = (exponent.clamp(0, top) << fmt.mantissa_bits) | mantissa
    return bits | (sign << (fmt.total_bits - 1))
