# binary search
def encode(x, fmt):
    E, M = fmt.exponent_bits, fmt.mantissa_bits
    bias = 2 ** (E - 1) - 1
    lim = 2 ** (E + M) - 2 if fmt.finite_only else (2**E - 1) << M

    def value(b):
        e = b >> M
        m = (b & (2**M - 1)).double()
        return torch.where(e == 0, m * 2.0 ** (1 - bias - M), (2.0**M + m) * 2.0 ** (e.double() - bias - M))

    a = x.abs().double()
    lo, hi = torch.zeros_like(a, dtype=torch.int64), torch.full_like(a, lim, dtype=torch.int64)
    for _ in range(E + M + 1):
        mid = (lo + hi + 1) // 2
        ok = value(mid) <= a
        lo = torch.where(ok, mid, lo)
        hi = torch.where(ok, hi, mid - 1)
    nxt = (lo + 1).clamp(max=lim)
    d0, d1 = a - value(lo), value(nxt) - a
    up = (d1 < d0) | ((d1 == d0) & (lo % 2 == 1))
    p = torch.where(up, nxt, lo)
    p[x.isinf()] = lim
    p[x.isnan()] = 2 ** (E + M) - 1
    return p + x.signbit() * 2 ** (E + M)
