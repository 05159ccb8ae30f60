# hint: Inductor generates no code for complex numbers
def fused(x, y, scale):
    f = x * torch.sigmoid(x)
    g = torch.where(y < 0, 0.1 * y, y)
    return torch.complex(f, g).abs().clamp(max=4.0) * scale
