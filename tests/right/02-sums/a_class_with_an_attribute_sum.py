# a class whose attribute is called sum
class _Running:
    def __init__(self, like, compensated):
        self.sum = torch.zeros_like(like[0])
        self.compensation = torch.zeros_like(like[0]) if compensated else None

    def add(self, term):
        before, self.sum = self.sum, self.sum + term
        if self.compensation is not None:
            big, small = (before, term) if abs(before) >= abs(term) else (term, before)
            self.compensation = self.compensation + ((big - self.sum) + small)

    def result(self):
        return self.sum if self.compensation is None else self.sum + self.compensation


def _run(x, compensated=False):
    running = _Running(x, compensated)
    for term in x:
        running.add(term)
    return running.result()


def naive_sum(x):
    return _run(x)


def sorted_sum(x):
    return _run(x[torch.sort(x.abs()).indices])


def pairwise_sum(x):
    if x.numel() == 1:
        return x[0].clone()
    left, right = x.split([x.numel() // 2, x.numel() - x.numel() // 2])
    return pairwise_sum(left) + pairwise_sum(right)


def neumaier_sum(x):
    return _run(x, compensated=True)
