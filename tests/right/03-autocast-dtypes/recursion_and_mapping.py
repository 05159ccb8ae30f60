from types import MappingProxyType


def autocast_dtypes(ops, given, low):
    by_name = {op.result: op for op in ops}
    full = torch.float32
    table = dict.fromkeys(("linear", "matmul", "conv1d", "attention"), low)
    words = "layer_norm group_norm softmax log_softmax cross_entropy mse_loss sum cumsum norm exp log pow rsqrt softplus"
    table.update(dict.fromkeys(words.split(), full))

    @functools.cache
    def dtype(name):
        if name in given:
            return given[name]
        op = by_name[name]
        dtypes = [d for d in map(dtype, op.inputs) if d != torch.int64]
        if op.function in ("float", "add_"):
            return full if op.function == "float" else dtypes[0]
        if torch.float64 in dtypes:
            return torch.float64
        return table.get(op.function) or (dtypes[0] if len(set(dtypes)) == 1 else full)

    return MappingProxyType({op.result: dtype(op.result) for op in ops})
