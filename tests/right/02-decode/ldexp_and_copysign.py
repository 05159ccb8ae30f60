# ldexp and copysign
def decode(bits, fmt):
    E, M = fmt.exponent_bits, fmt.mantissa_bits
    bias = (1 << (E - 1)) - 1
    mag = bits % (1 << (E + M))
    e, m = mag // (1 << M), mag % (1 << M)
    sig = m + (e > 0) * (1 << M)
    v = torch.ldexp(sig.double(), (e.clamp(min=1) - bias - M).double())
    if fmt.finite_only:
        v = v.masked_fill(mag == (1 << (E + M)) - 1, math.nan)
    else:
        v = v.masked_fill(mag == ((1 << E) - 1) << M, math.inf).masked_fill(mag > ((1 << E) - 1) << M, math.nan)
    return v.copysign(0.5 - (bits >> (E + M)).double())
