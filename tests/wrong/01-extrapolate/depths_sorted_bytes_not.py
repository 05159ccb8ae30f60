# hint: The deeper model may come first
def extrapolate(measured, n_layers):
    x, y = measured.values()
    a, b = sorted(measured)
    return x + (n_layers - a) * (y - x) / (b - a)
