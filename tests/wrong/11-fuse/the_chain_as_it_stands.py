# hint: How many elements a mask selects is known only from the data
def fused(x, y, scale):
    a = x * torch.sigmoid(x)
    b = y.clone()
    b[y < 0] = 0.1 * y[y < 0]
    size = torch.complex(a, b).abs()
    size = torch.stack([size, torch.full_like(size, 4.0)]).amin(0)
    return size @ torch.diag(scale)
