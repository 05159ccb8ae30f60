# No tensor: ranks that agree in all other coordinates are a group.
def rank_groups(n_nodes, ranks_per_node, tensor, context=1, pipeline=1, expert=1):
    n_ranks, block = n_nodes * ranks_per_node, tensor * context * pipeline
    if ranks_per_node % tensor or n_ranks % block or (n_ranks // block * context) % expert:
        raise ValueError("these sizes do not fit")
    data = n_ranks // block

    def at(rank):
        rest, t = divmod(rank, tensor)
        p, share = divmod(rest, context * data)
        return {"t": t, "c": share % context, "d": share // context, "p": p, "e": share % expert, "x": share // expert}

    def alike(*names):
        found = {}
        for rank in range(n_ranks):
            found.setdefault(tuple(at(rank)[name] for name in names), []).append(rank)
        return tuple(tuple(group) for group in found.values())

    return {
        "tensor": alike("p", "d", "c"),
        "context": alike("p", "d", "t"),
        "data": alike("p", "c", "t"),
        "pipeline": alike("d", "c", "t"),
        "gradients": alike("p", "t"),
        "expert": alike("p", "x", "t"),
        "expert_gradients": alike("p", "e", "t"),
    }
