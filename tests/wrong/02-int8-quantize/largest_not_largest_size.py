# hint: Take max |x|
def quantize_int8(x, symmetric, channel_dim=None):
    dims = [d for d in range(x.dim()) if d != channel_dim]
    keep = channel_dim is not None
    low = x.amin(dims, keepdim=keep).clamp(max=0)
    high = x.amax(dims, keepdim=keep).clamp(min=0)
    scale = high / 127 if symmetric else (high - low) / 255
    scale = torch.where(scale == 0, 1.0, scale)
    zero_point = torch.zeros_like(scale) if symmetric else torch.round(-128 - low / scale)
    q = torch.round(x / scale + zero_point).clamp(-127 if symmetric else -128, 127)
    return q.to(torch.int8), scale, zero_point.to(torch.int32)


def dequantize_int8(q, scale, zero_point):
    return (q.float() - zero_point) * scale
