# hint: sorted_sum has not been written yet
def naive_sum(x):
    total = torch.zeros((), dtype=x.dtype)
    for value in x:
        total = total + value
    return total


def sorted_sum(x):
    raise NotImplementedError("Write your answer here.")


def pairwise_sum(x):
    raise NotImplementedError("Write your answer here.")


def neumaier_sum(x):
    raise NotImplementedError("Write your answer here.")
