# hint: the same power of two
def decode(bits, fmt):
    E, M = fmt.exponent_bits, fmt.mantissa_bits
    bias = 127 if E == 8 else 15
    s = bits >> (E + M)
    e = (bits >> M) & (2**E - 1)
    m = bits & (2**M - 1)
    v = torch.where(e == 0, m.double() / 2**M * 2.0 ** (1 - bias), (1 + m.double() / 2**M) * 2.0 ** (e.double() - bias))
    top = e == 2**E - 1
    if fmt.finite_only:
        v[top & (m == 2**M - 1)] = float("nan")
    else:
        v[top & (m == 0)] = float("inf")
        v[top & (m != 0)] = float("nan")
    return v * (1.0 - 2 * s.double())
