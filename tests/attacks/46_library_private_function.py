"""Calls the function behind the library's optimizer, which has another name than that."""

ROW = 46
HARMLESS = True
EXERCISE = "06-adafactor"
STOCK = False
ANSWER = """
import torch
from torch.optim._adafactor import _single_tensor_adafactor as update

class Adafactor(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, beta2_decay=-0.8, eps=(None, 1e-3), d=1.0, weight_decay=0.0):
        super().__init__(params, dict(lr=lr, beta2_decay=beta2_decay, eps=eps, d=d, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in (p for p in group["params"] if p.grad is not None):
                state = self.state[p]
                if not state:
                    state["step"] = torch.tensor(0.0)
                    if p.dim() > 1:
                        state["row_var"] = p.grad.new_zeros(p.grad.shape[:-1] + (1,))
                        state["col_var"] = p.grad.new_zeros(p.grad.shape[:-2] + (1, p.grad.shape[-1]))
                    else:
                        state["variance"] = torch.zeros_like(p.grad)
                update(
                    [p], [p.grad], [state.get("row_var")], [state.get("col_var")], [state.get("variance")],
                    [state["step"]], None, None, d=group["d"], lr=group["lr"], beta2_decay=group["beta2_decay"],
                    weight_decay=group["weight_decay"], eps1=group["eps"][0], eps2=group["eps"][1], maximize=False,
                    has_complex=False,
                )
"""
