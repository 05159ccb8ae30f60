# hint: one accumulator still meets every element
def naive_sum(x):
    total = torch.zeros((), dtype=x.dtype)
    for value in x:
        total = total + value
    return total



def sorted_sum(x):
    return naive_sum(x[torch.argsort(x.abs())])



def pairwise_sum(x):
    total = x[0]
    for i in range(1, len(x)):
        total = total + x[i]
    return total



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

