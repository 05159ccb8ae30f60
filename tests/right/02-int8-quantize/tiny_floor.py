# an epsilon as the least scale, float64 inside
def quantize_int8(x, symmetric, channel_dim=None):
    import warnings

    warnings.warn("quantizing")
    y = x.double()
    if channel_dim is None:
        least, most = y.min(), y.max()
    else:
        rows = y.movedim(channel_dim, 0).flatten(1)
        shape = [-1 if axis == channel_dim % x.dim() else 1 for axis in range(x.dim())]
        least, most = rows.min(1).values.view(shape), rows.max(1).values.view(shape)
    least, most = least.minimum(torch.zeros(()).double()), most.maximum(torch.zeros(()).double())
    if symmetric:
        scale = (y.new_tensor(1e-8)).maximum(torch.maximum(most, -least) / 127).float()
        zero_point = torch.zeros(scale.shape, dtype=torch.int32)
        return (x * (1 / scale)).round().clamp(-127, 127).char(), scale, zero_point
    scale = ((most - least) / 255).clamp_min(1e-8).float()
    zero_point = (-128 - least / scale).round().clamp(-128, 127).int()
    return ((x / scale).round() + zero_point).clamp(-128, 127).char(), scale, zero_point


def dequantize_int8(q, scale, zero_point):
    return scale * (q.int() - zero_point.int()).float()
