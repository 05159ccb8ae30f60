# a loop over the channels, numpy inside
import numpy as np


def _codes(x, symmetric):
    low, high = min(float(x.min()), 0.0), max(float(x.max()), 0.0)
    scale = np.float32(max(-low, high) / 127.0 if symmetric else (high - low) / 255.0) or np.float32(1.0)
    zero = 0 if symmetric else int(np.rint(-128 - low / scale))
    bottom = -127 if symmetric else -128
    return np.clip(np.rint(x / scale).astype(np.int64) + zero, bottom, 127).astype(np.int8), scale, zero


def quantize_int8(x, symmetric, channel_dim=None):
    if channel_dim is None:
        q, scale, zero = _codes(x.numpy(), symmetric)
        return torch.from_numpy(q), torch.tensor(scale), torch.tensor(zero, dtype=torch.int32)
    parts = [_codes(part.numpy(), symmetric) for part in x.unbind(channel_dim)]
    shape = [1] * x.dim()
    shape[channel_dim] = -1
    return (
        torch.stack([torch.from_numpy(q) for q, _, _ in parts], channel_dim),
        torch.tensor([float(scale) for _, scale, _ in parts]).view(shape),
        torch.tensor([zero for _, _, zero in parts], dtype=torch.int32).view(shape),
    )


def dequantize_int8(q, scale, zero_point):
    return ((q.long() - zero_point) * scale.double()).float()
