# hint: The low 16 bits are cut off
def stochastic_round(x, generator):
    return (x.view(torch.int32) & -65536).view(torch.float32).to(torch.bfloat16)
