# hint: The two probabilities are swapped
def stochastic_round(x, generator):
    largest = torch.finfo(torch.bfloat16).max
    finite = torch.where(x.isfinite(), x, 0.0).clamp(-largest, largest).double()
    nearest = finite.bfloat16()
    inf = torch.full_like(nearest, math.inf)
    below = torch.where(nearest.double() > finite, torch.nextafter(nearest, -inf), nearest).double()
    above = torch.where(nearest.double() < finite, torch.nextafter(nearest, inf), nearest).double()
    p = torch.where(above > below, (finite - below) / (above - below), 0.0)
    up = torch.rand(x.shape, generator=generator, dtype=torch.float64) > p
    return torch.where(x.isfinite(), torch.where(up, above, below), x.double()).bfloat16()
