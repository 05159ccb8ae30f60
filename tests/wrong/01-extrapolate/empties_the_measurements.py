# hint: take nothing out
def extrapolate(measured, n_layers):
    a = min(measured)
    x = measured.pop(a)
    b = min(measured)
    y = measured.pop(b)
    return x + (n_layers - a) * (y - x) / (b - a)
