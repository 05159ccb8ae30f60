# warns on stderr, works in place on a copy
import sys
import warnings


class Decoder:
    def __init__(self, fmt):
        self.fmt = fmt
        self.bias = (1 << (fmt.exponent_bits - 1)) - 1

    def __call__(self, bits):
        work = bits.clone()
        mantissa = work.remainder(1 << self.fmt.mantissa_bits)
        work -= mantissa
        work >>= self.fmt.mantissa_bits
        exponent = work.remainder(1 << self.fmt.exponent_bits)
        minus = work.div(1 << self.fmt.exponent_bits, rounding_mode="floor")
        out = (mantissa.double() / (1 << self.fmt.mantissa_bits) + (exponent > 0)) * (
            torch.ones(bits.shape).double() * 2
        ).pow(exponent.clamp(min=1) - self.bias)
        last = exponent == (1 << self.fmt.exponent_bits) - 1
        full = mantissa == (1 << self.fmt.mantissa_bits) - 1
        if not self.fmt.finite_only:
            out = out.masked_fill(last & (mantissa == 0), float("inf")).masked_fill(last & (mantissa > 0), float("nan"))
        else:
            out = out.masked_fill(last & full, float("nan"))
        return out.mul(torch.where(minus == 1, -1.0, 1.0).double())


def decode(bits, fmt):
    warnings.warn("decoding")
    print("to stderr", file=sys.stderr)
    return Decoder(fmt)(bits)
