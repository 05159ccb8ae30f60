# pads with zeros
def naive_sum(x):
    total = torch.zeros((), dtype=x.dtype)
    for value in x:
        total = total + value
    return total


def sorted_sum(x):
    return naive_sum(x[x.abs().argsort()])


def neumaier_sum(x):
    s = torch.zeros((), dtype=x.dtype)
    c = torch.zeros((), dtype=x.dtype)
    for v in x:
        t = s + v
        if s.abs() >= v.abs():
            c = c + ((s - t) + v)
        else:
            c = c + ((v - t) + s)
        s = t
    return s + c


def pairwise_sum(x):
    n = 1
    while n < len(x):
        n *= 2
    x = torch.cat((x, x.new_zeros(n - len(x))))
    while len(x) > 1:
        x = x[: len(x) // 2] + x[len(x) // 2 :]
    return x.reshape(())
