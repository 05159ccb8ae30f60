import torch

from labkit.material.lab06 import Quantized, dynamic_map


def quantize(x, code_map, block_size=256):
    n = x.numel()
    padded = torch.zeros(-(-n // block_size) * block_size)
    padded[:n] = x.reshape(-1)
    rows = padded.reshape(-1, block_size)
    scales = rows.abs().max(dim=1).values
    share = rows / torch.where(scales == 0, torch.ones_like(scales), scales)[:, None]
    above = torch.searchsorted(code_map, share).clamp(1, 255)
    nearer_below = (share - code_map[above - 1]) <= (code_map[above] - share)
    return Quantized((above - nearer_below.long()).byte().reshape(-1)[:n].clone(), scales)


def dequantize(quantized, code_map, shape, block_size=256):
    codes = quantized.codes.long()
    return (code_map[codes] * quantized.scales[torch.arange(len(codes)) // block_size]).reshape(shape)


class Adam8bit(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps})
        self.maps = {"exp_avg": dynamic_map(True), "exp_avg_sq": dynamic_map(False)}

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                state["step"] = state.get("step", 0) + 1
                moments = []
                for (name, code_map), beta, new in zip(self.maps.items(), group["betas"], (p.grad, p.grad**2)):
                    old = state.get(name, torch.zeros_like(p))
                    old = dequantize(old, code_map, p.shape) if isinstance(old, Quantized) else old
                    moment = beta * old + (1 - beta) * new
                    state[name] = quantize(moment, code_map) if p.numel() >= 4096 else moment
                    moments.append(moment / (1 - beta ** state["step"]))
                p -= group["lr"] * moments[0] / (moments[1].sqrt() + group["eps"])
