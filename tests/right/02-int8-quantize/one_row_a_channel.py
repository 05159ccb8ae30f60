# one row a channel
def quantize_int8(x, symmetric, channel_dim=None):
    if channel_dim is None:
        flat = x.reshape(1, -1)
        shape = ()
    else:
        flat = x.movedim(channel_dim, 0).flatten(1) if x.ndim > 1 else x[:, None]
        shape = [1] * x.ndim
        shape[channel_dim] = x.shape[channel_dim]
    low, high = flat.min(1).values.clamp(max=0), flat.max(1).values.clamp(min=0)
    s = torch.max(-low, high) / 127 if symmetric else (high - low) / 255
    s = s.masked_fill(s == 0, 1.0).reshape(shape)
    z = torch.zeros_like(s) if symmetric else (-128 - low.reshape(shape) / s).round()
    q = (x / s).round().add(z).clamp(-127 if symmetric else -128, 127).to(torch.int8)
    return q, s, z.int()


def dequantize_int8(q, scale, zero_point):
    return scale * (q.to(torch.int32) - zero_point).to(torch.float32)
