# rounding on the bits of float32, no arithmetic on floats
def shift_right_to_even(value, shift):
    half = torch.ones_like(value) << (shift - 1)
    return (value + half - 1 + (value >> shift & 1)) >> shift


def encode(x, fmt):
    raw = x.view(torch.int32).to(torch.int64) & 0xFFFFFFFF
    sign, magnitude = raw >> 31, raw & 0x7FFFFFFF
    bias = 2 ** (fmt.exponent_bits - 1) - 1
    exponent = magnitude >> 23
    significand = torch.where(exponent == 0, magnitude & 0x7FFFFF, magnitude & 0x7FFFFF | 0x800000)
    exponent = exponent.clamp(min=1) - 127 + bias
    shift = 23 - fmt.mantissa_bits + (1 - exponent).clamp(min=0)
    rounded = shift_right_to_even(significand, shift.clamp(max=40))
    bits = rounded + ((exponent - 1).clamp(min=0) << fmt.mantissa_bits)
    top = 2**fmt.exponent_bits - 1 << fmt.mantissa_bits
    last = top + 2**fmt.mantissa_bits - 1
    bits = bits.clamp(max=last - 1) if fmt.finite_only else bits.clamp(max=top)
    bits[magnitude > 0x7F800000] = last
    return bits + (sign << (fmt.total_bits - 1))
