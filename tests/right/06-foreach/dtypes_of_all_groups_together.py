import torch


class ForeachAdamW(torch.optim.Optimizer):
    """One list for each dtype of the whole model: the settings of the groups are lists of numbers too."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        rows = [(group, p) for group in self.param_groups for p in group["params"] if p.grad is not None]
        for _, p in rows:
            state = self.state[p]
            if not state:
                state["moments"], state["t"] = [torch.zeros_like(p), torch.zeros_like(p)], 0
            state["t"] += 1
        for dtype in {p.dtype for _, p in rows}:
            chosen = [(group, p, self.state[p]) for group, p in rows if p.dtype == dtype]
            groups, ps, states = map(list, zip(*chosen))
            gs = [p.grad for p in ps]
            ms, vs = map(list, zip(*(state["moments"] for state in states)))
            beta1, beta2 = ([g["betas"][i] for g in groups] for i in (0, 1))
            torch._foreach_mul_(ps, [1 - g["lr"] * g["weight_decay"] for g in groups])
            torch._foreach_mul_(ms, [b / (1 - b) for b in beta1])
            torch._foreach_add_(ms, gs)
            torch._foreach_mul_(ms, [1 - b for b in beta1])
            torch._foreach_mul_(vs, beta2)
            torch._foreach_addcmul_(vs, gs, gs, [1 - b for b in beta2])
            roots = torch._foreach_sqrt(vs)
            torch._foreach_div_(roots, [(1 - b ** s["t"]) ** 0.5 for b, s in zip(beta2, states)])
            torch._foreach_add_(roots, [g["eps"] for g in groups])
            rates = [-g["lr"] / (1 - b ** s["t"]) for g, b, s in zip(groups, beta1, states)]
            torch._foreach_addcdiv_(ps, ms, roots, rates)
