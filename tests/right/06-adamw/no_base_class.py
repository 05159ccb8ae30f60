import torch


def decay_groups(model, weight_decay):
    seen, groups = set(), ({"params": [], "weight_decay": 0.0}, {"params": [], "weight_decay": weight_decay})
    for module in model.modules():
        for p in module.parameters(recurse=False):
            if id(p) not in seen:
                seen.add(id(p))
                groups[p.ndim > 1]["params"].append(p)
    return groups


class AdamW:
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2):
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        params = list(params)
        groups = params if isinstance(params[0], dict) else [{"params": params}]
        self.groups = [{**defaults, **group} for group in groups]
        self.moments = [[None] * len(group["params"]) for group in self.groups]

    def step(self):
        for group, moments in zip(self.groups, self.moments):
            (beta1, beta2), lr = group["betas"], group["lr"]
            for i, p in enumerate(group["params"]):
                if p.grad is None:
                    continue
                g = p.grad
                t, m, v = moments[i] or (0, torch.zeros_like(g), torch.zeros_like(g))
                t, m, v = t + 1, beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g**2
                moments[i] = (t, m, v)
                scale = (1 - beta2**t) ** 0.5 / (1 - beta1**t)
                below = v**0.5 + group["eps"] * (1 - beta2**t) ** 0.5
                p.data[...] = p.data * (1 - lr * group["weight_decay"]) - lr * scale * m / below

    def state_dict(self):
        return {"moments": self.moments}

    def load_state_dict(self, saved):
        self.moments = saved["moments"]
