import torch


def orthogonalize(g):
    if g.shape[0] > g.shape[1]:
        return orthogonalize(g.mT).mT
    x = g / max(g.norm().item(), 1e-12)
    eye = torch.eye(len(x))
    for _ in range(5):
        s = x @ x.mT
        x = (3.4445 * eye + s @ (2.0315 * s - 4.7750 * eye)) @ x
    return x


def split_parameters(model):
    tokens = {m.weight for m in model.modules() if isinstance(m, torch.nn.Embedding) or m is model.head}
    muon, adamw = [], []
    for p in model.parameters():
        (adamw if p.ndim < 2 or any(p is one for one in tokens) else muon).append(p)
    return muon, adamw


class Muon(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, momentum=0.95, weight_decay=0.1, adjust="original", n_blocks=1):
        names = ("lr", "momentum", "weight_decay", "adjust", "n_blocks")
        super().__init__(params, dict(zip(names, (lr, momentum, weight_decay, adjust, n_blocks))))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            mu, lr = group["momentum"], group["lr"]
            for p in (p for p in group["params"] if p.grad is not None):
                # A sum in place of a mean: the norm is divided out.
                sum_ = self.state[p].setdefault("sum", torch.zeros_like(p)).mul_(mu).add_(p.grad)
                n = group["n_blocks"]
                p.mul_(1 - lr * group["weight_decay"])
                for part, nesterov in zip(p.chunk(n), (p.grad + mu * sum_).chunk(n)):
                    h, w = part.shape
                    rate = lr * ((h / w) ** 0.5 if h > w else 1.0)
                    rate = lr * 0.2 * max(h, w) ** 0.5 if group["adjust"] == "match_rms_adamw" else rate
                    part.sub_(orthogonalize(nesterov), alpha=rate)
