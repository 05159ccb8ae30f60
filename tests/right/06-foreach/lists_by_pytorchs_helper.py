import torch
from torch.utils._foreach_utils import _group_tensors_by_device_and_dtype


class ForeachAdamW(torch.optim.Optimizer):
    """PyTorch's own helper sorts the lists; the moments are changed by products and sums, not by lerp."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            with_grad = [p for p in group["params"] if p.grad is not None]
            if not with_grad:
                continue
            for p in with_grad:
                state = self.state[p]
                if "t" not in state:
                    state |= {"m": torch.zeros_like(p), "v": torch.zeros_like(p), "t": 0}
                state["t"] += 1
            lists = [
                with_grad,
                [p.grad for p in with_grad],
                [self.state[p]["m"] for p in with_grad],
                [self.state[p]["v"] for p in with_grad],
            ]
            sorted_lists = _group_tensors_by_device_and_dtype(lists, with_indices=True)
            for (ps, gs, ms, vs), places in sorted_lists.values():
                ts = [self.state[with_grad[place]]["t"] for place in places]
                self.update(ps, gs, ms, vs, ts, group)

    def update(self, ps, gs, ms, vs, ts, group):
        beta1, beta2 = group["betas"]
        torch._foreach_mul_(ms, beta1)
        torch._foreach_add_(ms, gs, alpha=1 - beta1)
        torch._foreach_mul_(vs, beta2)
        torch._foreach_addcmul_(vs, gs, gs, 1 - beta2)
        roots = torch._foreach_div(vs, [1 - beta2**t for t in ts])
        torch._foreach_sqrt_(roots)
        torch._foreach_add_(roots, group["eps"])
        torch._foreach_mul_(roots, [-(1 - beta1**t) / group["lr"] for t in ts])
        torch._foreach_mul_(ps, 1 - group["lr"] * group["weight_decay"])
        torch._foreach_addcdiv_(ps, ms, roots)
