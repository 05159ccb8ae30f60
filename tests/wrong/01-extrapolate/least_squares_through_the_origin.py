# hint: a line through the origin
def extrapolate(measured, n_layers):
    x = torch.tensor(list(measured), dtype=torch.float64)
    y = torch.tensor(list(measured.values()), dtype=torch.float64)
    return n_layers * float(x @ y / (x @ x))
