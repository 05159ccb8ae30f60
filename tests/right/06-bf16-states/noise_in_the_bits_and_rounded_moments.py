import torch


def by_chance(x, generator):
    noise = torch.randint(2**16, x.shape, generator=generator, dtype=torch.int32)
    return ((x.view(torch.int32) + noise) & -(2**16)).view(torch.float32).bfloat16()


class BF16AdamW(torch.optim.Optimizer):
    def __init__(self, params, generator, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})
        self.generator = generator

    def step(self):
        with torch.no_grad():
            for group in self.param_groups:
                for p in filter(lambda p: p.grad is not None, group["params"]):
                    state = self.state[p]
                    if len(state) == 0:
                        state.update(step=torch.zeros(()), exp_avg=torch.zeros_like(p), exp_avg_sq=torch.zeros_like(p))
                    state["step"] += 1
                    t, g = state["step"].item(), p.grad.float()
                    b1, b2 = group["betas"]
                    for name, new in (
                        ("exp_avg", torch.lerp(state["exp_avg"].float(), g, 1 - b1)),
                        ("exp_avg_sq", torch.lerp(state["exp_avg_sq"].float(), g * g, 1 - b2)),
                    ):
                        state[name] = by_chance(new, self.generator)
                    m, v = state["exp_avg"].float() / (1 - b1**t), state["exp_avg_sq"].float() / (1 - b2**t)
                    w = p.float()
                    w = w - group["lr"] * (m / (v.sqrt() + group["eps"]) + group["weight_decay"] * w)
                    p.copy_(by_chance(w, self.generator))
