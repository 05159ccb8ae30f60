# hint: Only negative values are wrong
def stochastic_round(x, generator):
    low = (x.view(torch.int32) & -65536).view(torch.float32)
    step = torch.nextafter(low.bfloat16(), torch.tensor(float("inf")).bfloat16()).float() - low
    step = torch.where(low.abs() > 3.3e38, 0.0, step)
    chance = ((x - low) / step).abs()
    up = torch.rand(x.shape, generator=generator) < chance
    return torch.where(up & x.isfinite(), low + step, low).to(torch.bfloat16)
