# hint: finite numbers above the largest
def encode(x, fmt):
    E, M = fmt.exponent_bits, fmt.mantissa_bits
    bias = 2 ** (E - 1) - 1
    size = x.abs().clamp(1e-45, 1e38)
    p = torch.floor(torch.log2(size)).clamp(min=1 - bias)
    steps = torch.round(size.double() / 2.0 ** (p - M).double())
    pat = steps.long() + ((p + bias - 1).long() << M)
    top = 2 ** (E + M) - 2 if fmt.finite_only else (2**E - 1) << M
    pat = torch.where(x.isinf(), top, pat).clamp(max=top)
    pat = torch.where(x == 0, 0, pat)
    pat = torch.where(x.isnan(), 2 ** (E + M) - 1, pat)
    return pat + (torch.signbit(x).long() << (E + M))
