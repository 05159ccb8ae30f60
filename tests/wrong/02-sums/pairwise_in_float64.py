# hint: pairwise_sum is more exact here
def naive_sum(x):
    total = torch.zeros((), dtype=x.dtype)
    for value in x:
        total = total + value
    return total



def sorted_sum(x):
    return naive_sum(x[torch.argsort(x.abs())])



def pairwise_sum(x):
    def halves(values):
        if len(values) == 1:
            return values[0]
        return halves(values[: len(values) // 2]) + halves(values[len(values) // 2 :])

    return torch.tensor(halves(x.tolist()), dtype=x.dtype)



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

