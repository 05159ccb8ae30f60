# hint: starts from the wrong depth
def extrapolate(measured: Mapping[int, int], n_layers: int) -> float:
    """The bytes to expect at n_layers, from the bytes measured at two other depths."""
    (first, low), (second, high) = measured.items()
    per_layer = (high - low) / (second - first)
    return low + (n_layers - 1) * per_layer
