# hint: as a tensor that `backward` can be called on
class LossScaler:
    def __init__(self, init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000):
        self.s = float(init_scale)
        self.growth_factor, self.backoff_factor, self.growth_interval = growth_factor, backoff_factor, growth_interval
        self.clean = 0
        self.found_bad = None

    def get_scale(self):
        return self.s

    def scale(self, loss):
        return loss.detach() * self.s

    def unscale_(self, optimizer):
        grads = [p.grad for g in optimizer.param_groups for p in g["params"] if p.grad is not None]
        for grad in grads:
            grad.div_(self.s)
        self.found_bad = not all(grad.isfinite().all() for grad in grads)

    def step(self, optimizer):
        if self.found_bad is None:
            self.unscale_(optimizer)
        if not self.found_bad:
            optimizer.step()

    def update(self):
        if self.found_bad:
            self.s *= self.backoff_factor
            self.clean = 0
        else:
            self.clean += 1
            if self.clean == self.growth_interval:
                self.s *= self.growth_factor
                self.clean = 0
        self.found_bad = None
