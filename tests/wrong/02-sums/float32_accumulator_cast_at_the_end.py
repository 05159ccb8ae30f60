# hint: neumaier_sum does not add in x
def naive_sum(x):
    total = torch.zeros((), dtype=x.dtype)
    for value in x:
        total = total + value
    return total


def sorted_sum(x):
    return naive_sum(x[torch.argsort(x.abs())])


def pairwise_sum(x):
    n = len(x)
    if n == 1:
        return x[0]
    return pairwise_sum(x[: n // 2]) + pairwise_sum(x[n // 2 :])


def neumaier_sum(x):
    s = torch.zeros(())
    c = torch.zeros(())
    dtype = x.dtype
    for v in x.float():
        t = s + v
        if abs(s) >= abs(v):
            c = c + ((s - t) + v)
        else:
            c = c + ((v - t) + s)
        s = t
    return (s + c).to(dtype)
