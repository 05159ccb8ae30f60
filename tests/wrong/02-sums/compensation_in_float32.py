# hint: neumaier_sum does not add in x
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
    half = len(x) // 2
    return pairwise_sum(x[:half]) + pairwise_sum(x[half:])


def neumaier_sum(x):
    total = torch.zeros((), dtype=x.dtype)
    lost = torch.zeros((), dtype=torch.promote_types(x.dtype, torch.float32))
    for value in x:
        new = total + value
        lost = lost + ((total - new) + value if total.abs() >= value.abs() else (value - new) + total)
        total = new
    return (total + lost).to(x.dtype)
