# hint: the scale of the whole tensor
def quantize_int8(x, symmetric, channel_dim=None):
    dims = [d for d in range(x.dim()) if channel_dim is None or d != channel_dim]
    keep = channel_dim is not None
    shape = x.amin(dim=dims, keepdim=keep).shape
    low = x.min().clamp(max=0).expand(shape)
    high = x.max().clamp(min=0).expand(shape)
    if symmetric:
        scale = torch.maximum(-low, high) / 127
        scale = torch.where(scale == 0, torch.ones_like(scale), scale)
        zero_point = torch.zeros_like(scale, dtype=torch.int32)
        q = torch.round(x / scale).clamp(-127, 127)
    else:
        scale = (high - low) / 255
        scale = torch.where(scale == 0, torch.ones_like(scale), scale)
        zero_point = torch.round(-128 - low / scale).to(torch.int32)
        q = torch.round(x / scale + zero_point).clamp(-128, 127)
    return q.to(torch.int8), scale, zero_point


def dequantize_int8(q, scale, zero_point):
    return (q.to(torch.float32) - zero_point) * scale
