import math
from dataclasses import dataclass


@dataclass
class LossScaler:
    init_scale: float = 65536.0
    growth_factor: float = 2.0
    backoff_factor: float = 0.5
    growth_interval: int = 2000

    def __post_init__(self):
        self.power, self.left, self.state = self.init_scale, self.growth_interval, "scaled"

    def get_scale(self):
        return float(self.power)

    def scale(self, loss):
        return loss.mul(self.power)

    @torch.no_grad()
    def unscale_(self, optimizer):
        bad = 0
        for p in [p for g in optimizer.param_groups for p in g["params"]]:
            if p.grad is None:
                continue
            p.grad *= 1.0 / self.power
            bad += int((~torch.isfinite(p.grad)).sum())
        self.state = "bad" if bad else "good"

    def step(self, optimizer):
        if self.state == "scaled":
            self.unscale_(optimizer)
        if self.state == "good":
            optimizer.step()

    def update(self):
        self.left -= 1
        if self.state == "bad":
            self.power, self.left = self.power * self.backoff_factor, self.growth_interval
        elif not self.left:
            self.power, self.left = self.power * self.growth_factor, self.growth_interval
        self.state = "scaled"
