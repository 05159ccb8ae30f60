# hint: is an element lost, or taken twice, when n is odd
def naive_sum(x):
    total = torch.zeros((), dtype=x.dtype)
    for value in x:
        total = total + value
    return total



def sorted_sum(x):
    return naive_sum(x[torch.argsort(x.abs())])



def pairwise_sum(x):
    if len(x) == 1:
        return x[0]
    half = len(x) // 2
    return pairwise_sum(x[:half]) + pairwise_sum(x[half : 2 * half])



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

