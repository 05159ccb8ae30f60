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
            ps = [p for p in group["params"] if p.grad is not None]
            if not ps:
                continue
            beta1, beta2 = group["betas"]
            for p in ps:
                if p not in self.state:
                    self.state[p] = {"step": torch.tensor(0.0), "m": torch.zeros_like(p), "v": torch.zeros_like(p)}
                self.state[p]["step"] += 1
            gs = [p.grad for p in ps]
            ms, vs = [self.state[p]["m"] for p in ps], [self.state[p]["v"] for p in ps]
            ts = [self.state[p]["step"].item() for p in ps]
            torch._foreach_mul_(ps, 1 - group["lr"] * group["weight_decay"])
            torch._foreach_lerp_(ms, gs, 1 - beta1)
            torch._foreach_mul_(vs, beta2)
            torch._foreach_addcmul_(vs, gs, gs, 1 - beta2)
            below = torch._foreach_div(vs, [1 - beta2**t for t in ts])
            torch._foreach_sqrt_(below)
            torch._foreach_add_(below, group["eps"])
            torch._foreach_addcdiv_(ps, ms, below, [-group["lr"] / (1 - beta1**t) for t in ts])
