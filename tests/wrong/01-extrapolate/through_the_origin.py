# hint: a line through the origin
def extrapolate(measured, n_layers):
    depth, n_bytes = list(measured.items())[-1]
    return n_layers * n_bytes / depth
