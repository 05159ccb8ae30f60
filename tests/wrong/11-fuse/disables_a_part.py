# hint: A function that the compiler may not touch
@torch.compiler.disable
def leaky(y):
    return torch.where(y < 0, 0.1 * y, y)


def fused(x, y, scale):
    return torch.hypot(x * torch.sigmoid(x), leaky(y)).clamp(max=4.0) * scale
