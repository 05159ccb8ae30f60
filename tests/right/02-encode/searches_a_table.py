# all values of the format in a sorted table (numpy), ties by the parity of the index
import numpy as np

TABLES = {}


def table_of(fmt):
    if fmt not in TABLES:
        k = np.arange(2 ** (fmt.total_bits - 1))
        e, m = k >> fmt.mantissa_bits, k & (2**fmt.mantissa_bits - 1)
        bias = 2 ** (fmt.exponent_bits - 1) - 1
        values = np.ldexp((m + np.where(e > 0, 2.0**fmt.mantissa_bits, 0.0)), np.maximum(e, 1) - bias - fmt.mantissa_bits)
        TABLES[fmt] = values[: len(k) - 1 if fmt.finite_only else len(k) - 2**fmt.mantissa_bits + 1]
    return TABLES[fmt]


def encode(x, fmt):
    table, size = table_of(fmt), np.abs(x.double().numpy())
    right = np.clip(np.searchsorted(table, size), 1, len(table) - 1)
    middle = (table[right - 1] + table[right]) / 2
    index = np.where((size > middle) | ((size == middle) & (right % 2 == 0)), right, right - 1)
    index = np.where(np.isnan(size), 2 ** (fmt.total_bits - 1) - 1, index)
    return torch.from_numpy(index + np.where(np.signbit(x.numpy()), 2 ** (fmt.total_bits - 1), 0))
