import torch

from labkit.material.lab06 import Quantized, dynamic_map


def quantize(x, code_map, block_size=256):
    codes, scales = [], []
    for block in x.reshape(-1).split(block_size):
        scale = block.abs().max()
        share = block / scale if scale > 0 else torch.zeros_like(block)
        codes.append((share[:, None] - code_map).abs().argmin(1))
        scales.append(scale)
    return Quantized(torch.cat(codes).byte(), torch.stack(scales))


def dequantize(quantized, code_map, shape, block_size=256):
    values = code_map[quantized.codes.long()].split(block_size)
    return torch.cat([part * scale for part, scale in zip(values, quantized.scales)]).reshape(shape)


class Adam8bit(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps})
        self.maps = {"exp_avg": dynamic_map(True), "exp_avg_sq": dynamic_map(False)}

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
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
