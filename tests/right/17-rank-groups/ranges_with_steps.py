# Groups as Megatron-LM builds them: ranges with a step, one kind after the other.
def rank_groups(n_nodes, ranks_per_node, tensor, context=1, pipeline=1, expert=1):
    n = n_nodes * ranks_per_node
    data, left = divmod(n, tensor * context * pipeline)
    if left or ranks_per_node % tensor:
        raise ValueError("tensor, context and pipeline do not divide the ranks, or a node cuts a tensor group")
    stage, shares = n // pipeline, data * context
    if shares % expert:
        raise ValueError("expert does not divide data * context")
    sequence = tensor * context
    found = {"tensor": [range(first, first + tensor) for first in range(0, n, tensor)]}
    found["pipeline"] = [range(first, n, stage) for first in range(stage)]
    found["data"] = [
        range(start + offset, start + stage, sequence) for start in range(0, n, stage) for offset in range(sequence)
    ]
    found["context"] = [
        range(start + offset, start + sequence, tensor) for start in range(0, n, sequence) for offset in range(tensor)
    ]
    found["gradients"] = [range(s + t, s + stage, tensor) for s in range(0, n, stage) for t in range(tensor)]
    whole = [list(group) for group in found["gradients"]]
    found["expert"] = [group[k : k + expert] for group in whole for k in range(0, shares, expert)]
    found["expert_gradients"] = [group[k::expert] for group in whole for k in range(expert)]
    return found
