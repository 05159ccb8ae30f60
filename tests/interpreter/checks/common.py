"""What the checks share: their list, the numbers they run on, and equality to the bit."""

import torch

ALL = {}


NARROW = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)


def check(function):
    ALL[function.__name__] = function
    return function


def patterns(dtype):
    """Every bit pattern of a narrow type."""
    integers = torch.arange(2 ** (8 * dtype.itemsize), dtype=torch.int32)
    return integers.to(torch.uint8 if dtype.itemsize == 1 else torch.uint16).view(dtype)


def singles(n=1 << 15):
    """Random float32 patterns, and every value halfway between two neighbours in each narrow type, and its own."""
    gen = torch.Generator().manual_seed(0)
    random = torch.randint(-(2**31), 2**31, (n,), generator=gen, dtype=torch.int64).to(torch.int32).view(torch.float32)
    ties = []
    for dtype in NARROW:
        values = patterns(dtype).float()
        values = values[values.isfinite()].unique()
        ties += [values, values[:-1] + (values[1:] - values[:-1]) / 2]
    special = torch.tensor([0.0, -0.0, float("inf"), -float("inf"), float("nan"), 3.4e38, 464.0, 465.0, 61440.0, 1e-45])
    return torch.cat([random, *ties, special])


def same(got, want):
    """Equal to the bit, NaN equal to any NaN, and zeros by their sign."""
    assert got.dtype == want.dtype and got.shape == want.shape
    got, want = got.float(), want.float()
    wrong = ~((got == want) & (got.signbit() == want.signbit()) | (got.isnan() & want.isnan()))
    at = wrong.nonzero()[:1]
    assert not wrong.any(), f"{int(wrong.sum())} differ; at {at.tolist()} got {got[wrong][0]} want {want[wrong][0]}"
