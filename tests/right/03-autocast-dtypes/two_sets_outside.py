# sets of names beside the function, and all dtypes in one dictionary
LOW = {"linear", "matmul", "conv1d", "attention"}
HIGH = {"layer_norm", "group_norm", "softmax", "log_softmax", "cross_entropy", "mse_loss", "sum", "cumsum", "norm"}
HIGH |= {"exp", "log", "pow", "rsqrt", "softplus", "float"}


def autocast_dtypes(ops, given, low):
    dtypes = dict(given)
    for op in ops:
        inputs = [dtypes[name] for name in op.inputs if dtypes[name].is_floating_point]
        widest = functools.reduce(torch.promote_types, inputs)
        if op.function == "add_":
            widest = inputs[0]
        elif widest == torch.float64 and op.function != "float":
            pass
        elif op.function in LOW:
            widest = low
        elif op.function in HIGH:
            widest = torch.float32
        dtypes[op.result] = widest
    return {name: dtype for name, dtype in dtypes.items() if name not in given}
