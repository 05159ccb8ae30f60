import itertools


def naive_sum(x):
    *_, last = itertools.accumulate(x.unbind())
    return last


def sorted_sum(x):
    values = sorted(x.clone(), key=lambda v: abs(v.item()))
    return naive_sum(torch.stack(values))


def pairwise_sum(x):
    x = x.clone()
    while len(x) > 1:
        if len(x) % 2:
            x = torch.cat([x, torch.zeros(1, dtype=x.dtype)])
        x = x[0::2] + x[1::2]
    return x[0]


def two_sum(a, b):
    """Knuth's, which needs no branch."""
    s = a + b
    b_part = s - a
    return s, (a - (s - b_part)) + (b - b_part)


def neumaier_sum(x):
    s, c = x[0], torch.zeros_like(x[0])
    for v in x[1:]:
        s, e = two_sum(s, v)
        c = c + e
    return s + c
