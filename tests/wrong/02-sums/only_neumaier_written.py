# hint: naive_sum has not been written yet
def naive_sum(x):
    raise NotImplementedError("Write your answer here.")


def sorted_sum(x):
    raise NotImplementedError("Write your answer here.")


def pairwise_sum(x):
    raise NotImplementedError("Write your answer here.")


def neumaier_sum(x):
    s = torch.zeros((), dtype=x.dtype)
    c = torch.zeros((), dtype=x.dtype)
    for v in x:
        t = s + v
        if abs(s) >= abs(v):
            c = c + ((s - t) + v)
        else:
            c = c + ((v - t) + s)
        s = t
    return s + c
