# in numpy
def decode(bits, fmt):
    import numpy as np

    E, M = fmt.exponent_bits, fmt.mantissa_bits
    b = bits.numpy()
    bias = 2 ** (E - 1) - 1
    e = b >> M & 2**E - 1
    m = b & 2**M - 1
    with np.errstate(all="ignore"):
        v = np.ldexp((m + np.where(e > 0, 2.0**M, 0.0)), (np.maximum(e, 1) - bias - M).astype(int))
    if fmt.finite_only:
        v = np.where((e == 2**E - 1) & (m == 2**M - 1), np.nan, v)
    else:
        v = np.where(e == 2**E - 1, np.where(m == 0, np.inf, np.nan), v)
    return torch.from_numpy(np.asarray(np.where(b >> (E + M) == 1, -v, v))).reshape(bits.shape)
