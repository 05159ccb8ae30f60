# hint: 255 gaps
def quantize_int8(x, symmetric, channel_dim=None):
    dims = [d for d in range(x.ndim) if d != channel_dim]
    low = x.amin(dims, keepdim=channel_dim is not None).clamp(max=0)
    high = x.amax(dims, keepdim=channel_dim is not None).clamp(min=0)
    if symmetric:
        scale = torch.maximum(-low, high) / 127
        scale = torch.where(scale == 0, 1, scale)
        z = torch.zeros_like(scale)
        q = torch.round(x / scale).clamp(-127, 127)
    else:
        scale = (high - low) / 256
        scale = torch.where(scale == 0, 1, scale)
        z = torch.round(-128 - low / scale)
        q = torch.round(x / scale + z).clamp(-128, 127)
    return q.to(torch.int8), scale, z.to(torch.int32)


def dequantize_int8(q, scale, zero_point):
    return (q.float() - zero_point) * scale
