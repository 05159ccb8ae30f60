# the fields moved to where float32 has them, then scaled
import numpy as np


def decode(bits, fmt):
    magnitude = bits & (2 ** (fmt.total_bits - 1) - 1)
    as_float32 = (magnitude << (23 - fmt.mantissa_bits)).to(torch.int32).view(torch.float32)
    # float32 reads the exponent with a bias of 127: undo that, in float64 where nothing overflows
    value = as_float32.double().numpy() * 2.0 ** (127 - (2 ** (fmt.exponent_bits - 1) - 1))
    top = 2**fmt.exponent_bits - 1 << fmt.mantissa_bits
    if fmt.finite_only:
        last = 2 ** (fmt.total_bits - 1) - 1
        value = np.where(magnitude.numpy() == last, np.nan, value)
    else:
        value = np.where(magnitude.numpy() == top, np.inf, np.where(magnitude.numpy() > top, np.nan, value))
    return torch.from_numpy(np.copysign(value, 0.5 - (bits >> (fmt.total_bits - 1)).numpy()))
