def fsdp_order(n_layers):
    """Walk over the passes; before each, gather whatever of the next passes finds a place."""
    passes = [("forward", i) for i in range(n_layers)] + [("backward", i) for i in range(n_layers - 1, -1, -1)]
    order, whole, waiting = [], [], []
    for at, (kind, layer) in enumerate(passes):
        for _, ahead in passes[at:]:
            if ahead not in whole and len(whole) < 2:
                whole.append(ahead)
                order.append(("gather", ahead))
        order += waiting
        waiting = [["reduce", layer]] if kind == "backward" else []
        order.append((kind, layer))
        if layer not in [ahead for _, ahead in passes[at + 1 : at + 3]]:
            whole.remove(layer)
            order.append(("free", layer))
    return order + waiting
