import torch

from labkit.material import lab06


class BF16AdamW(torch.optim.Optimizer):
    def __init__(self, params, generator, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2):
        super().__init__(
            params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        )
        self.generator = generator

    def _state_of(self, p):
        state = self.state[p]
        if not state:
            state.update(exp_avg=p.new_zeros(p.shape), exp_avg_sq=p.new_zeros(p.shape), count=0)
        state["count"] += 1
        return state

    @torch.no_grad()
    def step(self) -> None:
        """Weight, mean and square are three rows of one float32 tensor, which is rounded once."""
        for group in self.param_groups:
            lr, lam, eps = group["lr"], group["weight_decay"], group["eps"]
            b1, b2 = group["betas"]
            for p in [p for p in group["params"] if p.grad is not None]:
                s = self._state_of(p)
                stored = (p, s["exp_avg"], s["exp_avg_sq"])
                all3 = torch.stack([t.float() for t in stored])
                g = p.grad.float()
                w, m, v = all3[0], all3[1], all3[2]
                m.lerp_(g, 1 - b1)
                v.lerp_(g.square(), 1 - b2)
                corrected = (m / (1 - b1 ** s["count"]), v / (1 - b2 ** s["count"]))
                w.sub_(lr * (corrected[0] / (corrected[1].sqrt() + eps) + lam * w))
                for target, new in zip(stored, lab06.stochastic_round(all3, self.generator)):
                    target.copy_(new)
