# A table of what is cut and how often everything is passed round, and exact fractions; two of the three batch sizes.
from fractions import Fraction


def mesh_shape(method, n_nodes, ranks_per_node):
    shards = {"ddp": 1, "hybrid": ranks_per_node}.get(method, n_nodes * ranks_per_node)
    return [n_nodes * ranks_per_node // shards, shards]


TABLE = {"ddp": (0, 0, 2), "zero1": (12, 0, 2), "zero2": (14, 1, 1), "zero3": (16, 3, 0), "hybrid": (16, 3, 0)}


def bytes_kept(method, n_params, n_nodes, ranks_per_node):
    ranks = ranks_per_node * (1 if method == "hybrid" else n_nodes)
    n_cut = TABLE[method][0]
    return (16 - n_cut) * n_params + Fraction(n_cut * n_params, ranks)


def bytes_sent(method, n_params, n_nodes, ranks_per_node, n_micro):
    _, each, once = TABLE[method]
    ranks = ranks_per_node * (1 if method == "hybrid" else n_nodes)
    a_pass = Fraction(2 * n_params * (ranks - 1), ranks)
    sent = (each * n_micro + once) * a_pass
    across = sent if n_nodes > 1 else 0
    if method == "hybrid":
        across = Fraction(4 * n_params * (n_nodes - 1), n_nodes)
        sent += across / ranks_per_node
    return sent, across


def deepspeed_config(method, n_nodes, ranks_per_node, micro_batch, n_micro):
    config = {"train_micro_batch_size_per_gpu": micro_batch, "gradient_accumulation_steps": n_micro}
    config["fp16"] = {"enabled": True, "loss_scale_window": 1000, "hysteresis": 2}
    if method != "ddp":
        config["zero_optimization"] = {"stage": int(method.removeprefix("zero"))}
    return config
