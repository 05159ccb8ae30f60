class LossScaler:
    def __init__(self, init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000):
        self.s = torch.tensor(float(init_scale))
        self.factors, self.every, self.since = (backoff_factor, growth_factor), growth_interval, 0
        self.finite = {}

    def get_scale(self):
        return self.s.item()

    def scale(self, loss):
        return self.s * loss

    def unscale_(self, optimizer):
        total = torch.zeros(())
        for group in optimizer.param_groups:
            for p in filter(lambda p: p.grad is not None, group["params"]):
                p.grad = p.grad / self.s
                total = total + p.grad.double().norm()
        self.finite[id(optimizer)] = bool(torch.isfinite(total))

    def step(self, optimizer):
        if id(optimizer) not in self.finite:
            self.unscale_(optimizer)
        return optimizer.step() if self.finite[id(optimizer)] else None

    def update(self):
        good = all(self.finite.values())
        self.since = self.since + 1 if good else 0
        grow = good and self.since % self.every == 0
        if grow or not good:
            self.s = self.s * self.factors[grow]
        self.finite.clear()
