import sys
import warnings


def naive_sum(x):
    warnings.warn("adding one by one")
    s = x[0].clone()
    for i in range(1, x.numel()):
        s += x[i]
    return s


def sorted_sum(x):
    print("sorting", x.shape)
    order = torch.sort(x.abs(), stable=True).indices
    return naive_sum(torch.index_select(x, 0, order))


def pairwise_sum(x):
    if x.numel() <= 4:
        return naive_sum(x)
    h = (x.numel() + 1) // 2
    return torch.add(pairwise_sum(x[:h]), pairwise_sum(x[h:]))


class Neumaier:
    def __init__(self, dtype):
        self.s = self.c = torch.zeros((), dtype=dtype)

    def add(self, v):
        t = self.s + v
        big, small = (self.s, v) if self.s.abs() > v.abs() else (v, self.s)
        self.c = self.c + ((big - t) + small)
        self.s = t


def neumaier_sum(x):
    print("compensating", file=sys.stderr)
    acc = Neumaier(x.dtype)
    for v in x.unbind(0):
        acc.add(v)
    return acc.s + acc.c
