def neighbours(x):
    largest = torch.finfo(torch.bfloat16).max
    nearest = x.clamp(-largest, largest).bfloat16()
    up = torch.full_like(nearest, largest)
    above = torch.where(nearest.float() < x, torch.nextafter(nearest, up), nearest)
    below = torch.where(nearest.float() > x, torch.nextafter(nearest, -up), nearest)
    return below, above


def stochastic_round(x, generator):
    finite = torch.where(x.isfinite(), x, 0.0)
    below, above = neighbours(finite)
    gap = above.double() - below.double()
    chance = torch.where(gap > 0, (finite.double() - below.double()) / gap, 0.0)
    draw = torch.rand(x.shape, generator=generator, dtype=torch.float64, device=x.device)
    rounded = torch.where(draw < chance, above, below)
    return torch.where(x.isfinite(), rounded, x.bfloat16())
