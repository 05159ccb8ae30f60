import torch


class Adafactor(torch.optim.Optimizer):
    """As in the paper: sums over rows and columns, divided by the sum of all."""

    def __init__(self, params, lr=1e-2, beta2_decay=-0.8, eps=(2**-23, 1e-3), d=1.0):
        super().__init__(params, {"lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d})

    def step(self):
        with torch.no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        self.one(p, group)

    def one(self, p, group):
        state, g = self.state[p], p.grad
        t = state["step"] = state.get("step", 0) + 1
        old = 1 - t ** group["beta2_decay"]
        if p.dim() <= 1:
            v = state["v"] = old * state.get("v", 0) + (1 - old) * g * g
        else:
            r = state["r"] = old * state.get("r", 0) + (1 - old) * (g * g).sum(-1)
            c = state["c"] = old * state.get("c", 0) + (1 - old) * (g * g).sum(-2)
            least = group["eps"][0] * p.shape[-2] * p.shape[-1]
            v = r[..., :, None] * c[..., None, :] / r.sum(-1)[..., None, None].clamp(min=least)
        u = g * v.clamp(min=group["eps"][0] ** 2).rsqrt()
        rms = lambda x: (x * x).mean() ** 0.5
        u = u / torch.clamp(rms(u) / group["d"], min=1)
        p.add_(u * torch.clamp(rms(p), min=group["eps"][1]), alpha=-min(group["lr"], 1 / t**0.5))
