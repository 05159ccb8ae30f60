# hint: Compare the exponent and the mantissa field
def decode(bits, fmt):
    E, M = fmt.exponent_bits, fmt.mantissa_bits
    bias = 2 ** (E - 1) - 1
    sign = (bits >> (E + M)) & 1
    e = (bits >> M) & (2**E - 1)
    m = bits & (2**M - 1)
    v = torch.where(e == 0, m.double() / 2**M * 2.0 ** (1 - bias), (1 + m.double() / 2**M) * 2.0 ** (e.double() - bias))
    if fmt.finite_only:
        v[bits == 2 ** (E + M) - 1] = float("nan")
    else:
        inf = (2**E - 1) << M
        v[bits == inf] = float("inf")
        v[bits > inf] = float("nan")
    return torch.where(sign == 1, -v, v)
