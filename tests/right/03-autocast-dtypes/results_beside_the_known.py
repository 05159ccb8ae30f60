# sets of names beside the function, and results kept beside what is known
LOW = {"linear", "matmul", "conv1d", "attention"}
FULL = {"softmax", "log_softmax", "cross_entropy", "mse_loss", "layer_norm", "group_norm", "sum", "cumsum", "norm", "exp", "log", "pow", "rsqrt", "softplus"}


def autocast_dtypes(ops, given, low):
    known = dict(given)
    results = {}
    for op in ops:
        inputs = [known[name] for name in op.inputs]
        floating = [d for d in inputs if d.is_floating_point]
        widest = functools.reduce(torch.promote_types, floating)
        if op.function == "float":
            dtype = torch.float32
        elif op.function == "add_":
            dtype = inputs[0]
        elif widest == torch.float64:
            dtype = widest
        elif op.function in LOW:
            dtype = low
        elif op.function in FULL:
            dtype = torch.float32
        else:
            dtype = widest
        known[op.result] = results[op.result] = dtype
    return results
