# hint: That of F.leaky_relu is 0.01
def fused(x, y, scale):
    return torch.hypot(F.silu(x), F.leaky_relu(y)).clamp(max=4.0) * scale
