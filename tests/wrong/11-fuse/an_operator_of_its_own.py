# hint: An operator that the compiler cannot look into
@torch.library.custom_op("lab11_fuse::size", mutates_args=())
def size_of(f: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    return torch.sqrt(f * f + g * g).clamp(max=4.0)


@size_of.register_fake
def _(f, g):
    return torch.empty_like(f)


def fused(x, y, scale):
    f = x * torch.sigmoid(x)
    g = torch.where(y < 0, 0.1 * y, y)
    return size_of(f, g) * scale
