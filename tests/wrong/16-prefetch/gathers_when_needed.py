# hint: network and GPU take turns
def fsdp_order(n_layers):
    order = []
    for layer in range(n_layers):
        order += [("gather", layer), ("forward", layer), ("free", layer)]
    for layer in reversed(range(n_layers)):
        order += [("gather", layer), ("backward", layer), ("free", layer), ("reduce", layer)]
    return order
