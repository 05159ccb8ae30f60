# hint: not always one layer
def extrapolate(measured: Mapping[int, int], n_layers: int) -> float:
    """The bytes to expect at n_layers, from the bytes measured at two other depths."""
    (first, low), (second, high) = measured.items()
    per_layer = high - low
    return low + (n_layers - first) * per_layer
