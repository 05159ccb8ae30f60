# hint: the code 128, which int8 does not have
def quantize_int8(x, symmetric, channel_dim=None):
    dims = [d for d in range(x.dim()) if channel_dim is None or d != channel_dim]
    keep = channel_dim is not None
    low = x.amin(dim=dims, keepdim=keep).clamp(max=0)
    high = x.amax(dim=dims, keepdim=keep).clamp(min=0)
    if symmetric:
        scale = torch.maximum(-low, high) / 128
        scale = torch.where(scale == 0, torch.ones_like(scale), scale)
        zero_point = torch.zeros_like(scale, dtype=torch.int32)
        q = torch.round(x / scale).clamp(-128, 127)
    else:
        scale = (high - low) / 255
        scale = torch.where(scale == 0, torch.ones_like(scale), scale)
        zero_point = torch.round(-128 - low / scale).to(torch.int32)
        q = torch.round(x / scale + zero_point).clamp(-128, 127)
    return q.to(torch.int8), scale, zero_point


def dequantize_int8(q, scale, zero_point):
    return (q.to(torch.float32) - zero_point) * scale
