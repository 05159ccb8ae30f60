# Storages of the inputs first, functions with what a layer has.
def kept_bytes(forward, n_outputs):
    inputs, kept = set(), {}
    for node in forward.graph.nodes:
        if node.op == "placeholder":
            inputs |= set(storages_of(node))
        if node.op == "output":
            for saved in node.args[0][n_outputs:]:
                kept |= {key: size for key, size in storages_of(saved).items() if key not in inputs}
    return sum(kept.values())


def saves(x, w):
    return torch.tanh(torch.sigmoid(torch.tanh(torch.sin(x).exp()) * 2).sin())


def saves_nothing(x, w):
    for _ in range(5):
        x = x @ w
    return x
