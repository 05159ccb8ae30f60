def extrapolate(measured, n_layers):
    deep, shallow = max(measured), min(measured)
    per_layer = (measured[deep] - measured[shallow]) // (deep - shallow)
    return measured[deep] + per_layer * (n_layers - deep)
