# hint: taken for float32
def autocast_dtypes(ops, given, low):
    lows = {"linear", "matmul", "conv1d", "attention"}
    highs = {"softmax", "log_softmax", "cross_entropy", "mse_loss", "layer_norm", "group_norm", "sum", "cumsum", "norm", "exp", "log", "pow", "rsqrt", "softplus"}
    out = {}
    def d(name):
        return given.get(name, torch.float32)
    for op in ops:
        ins = [d(n) for n in op.inputs if d(n).is_floating_point]
        w = ins[0]
        for other in ins[1:]:
            w = torch.promote_types(w, other)
        if op.function == "float":
            out[op.result] = torch.float32
        elif op.function == "add_":
            out[op.result] = ins[0]
        elif w == torch.float64:
            out[op.result] = w
        elif op.function in lows:
            out[op.result] = low
        elif op.function in highs:
            out[op.result] = torch.float32
        else:
            out[op.result] = w
    return out
