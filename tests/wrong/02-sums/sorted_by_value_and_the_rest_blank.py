# hint: x was sorted by value
def naive_sum(x):
    total = torch.zeros((), dtype=x.dtype)
    for value in x:
        total = total + value
    return total


def sorted_sum(x):
    return naive_sum(torch.sort(x).values)


def pairwise_sum(x):
    raise NotImplementedError("Write your answer here.")


def neumaier_sum(x):
    raise NotImplementedError("Write your answer here.")
