# hint: Only two layers may be whole
def fsdp_order(n_layers):
    layers = range(n_layers)
    order = [("gather", layer) for layer in layers] + [("forward", layer) for layer in layers]
    for layer in reversed(layers):
        order += [("backward", layer), ("free", layer), ("reduce", layer)]
    return order
