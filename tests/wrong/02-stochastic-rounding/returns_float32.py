# hint: Return a bfloat16 tensor
def stochastic_round(x, generator):
    noise = torch.randint(0, 2**16, x.shape, generator=generator, dtype=torch.int32)
    return ((x.view(torch.int32) + noise) & -65536).view(torch.float32)
