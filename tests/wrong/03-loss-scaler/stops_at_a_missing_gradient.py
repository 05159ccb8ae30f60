# hint: stay scaled
class LossScaler:
    def __init__(self, init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000):
        self.current, self.growth, self.backoff = init_scale, growth_factor, backoff_factor
        self.interval, self.clean, self.bad = growth_interval, 0, None

    def get_scale(self):
        return self.current

    def scale(self, loss):
        return loss * self.current

    def unscale_(self, optimizer):
        self.bad = False
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    return
                p.grad.div_(self.current)
                if not p.grad.isfinite().all():
                    self.bad = True

    def step(self, optimizer):
        if self.bad is None:
            self.unscale_(optimizer)
        if not self.bad:
            optimizer.step()

    def update(self):
        if self.bad:
            self.current *= self.backoff
            self.clean = 0
        else:
            self.clean += 1
            if self.clean == self.interval:
                self.current *= self.growth
                self.clean = 0
        self.bad = None
