def fraction_to_zero(exponents, counts, scale):
    shift = math.frexp(scale)[1] - 1
    lost = sum(n for e, n in zip(exponents.tolist(), counts.tolist()) if e + shift <= -26)
    return torch.tensor(lost) / counts.sum()


def largest_safe_scale(exponents, counts):
    last = max(e for e, n in zip(exponents.tolist(), counts.tolist()) if n)
    return torch.tensor(2.0, dtype=torch.float64) ** (14 - last)
