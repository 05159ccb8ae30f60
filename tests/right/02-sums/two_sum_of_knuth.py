# two sum of knuth
def naive_sum(x):
    total = torch.zeros((), dtype=x.dtype)
    for value in x:
        total = total + value
    return total


def sorted_sum(x):
    return naive_sum(x[x.abs().argsort()])


def pairwise_sum(x):
    if len(x) == 1:
        return x[0]
    return pairwise_sum(x[: len(x) // 2]) + pairwise_sum(x[len(x) // 2 :])


def neumaier_sum(x):
    s = torch.zeros_like(x[0])
    c = torch.zeros_like(x[0])
    for v in x:
        t = s + v
        b = t - s
        c += (s - (t - b)) + (v - b)
        s = t
    return s + c
