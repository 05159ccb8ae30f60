import torch


def decay_groups(model, weight_decay):
    decays = {True: weight_decay, False: 0.0}
    params = list(model.parameters())
    return [{"params": [p for p in params if (p.dim() > 1) is many], "weight_decay": decays[many]} for many in decays]


class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            (b1, b2), lr = group["betas"], group["lr"]
            for p in filter(lambda p: p.grad is not None, group["params"]):
                if p not in self.state:
                    self.state[p] = {"t": torch.tensor(0.0), "moments": torch.zeros(2, *p.shape)}
                self.state[p]["t"] += 1
                t, (m, v) = self.state[p]["t"].item(), self.state[p]["moments"]
                m += (1 - b1) * (p.grad - m)
                v += (1 - b2) * (p.grad * p.grad - v)
                p += -lr * (m / (1 - b1**t) / (v.div(1 - b2**t).sqrt() + group["eps"]) + group["weight_decay"] * p)
