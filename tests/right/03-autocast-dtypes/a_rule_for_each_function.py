class Rules:
    def __init__(self, low):
        self.low = low

    def __getattr__(self, name):
        return self.widest

    def widest(self, *inputs):
        return (sum(torch.ones((), dtype=one) for one in inputs)).dtype

    def cast(self, to, *inputs):
        return torch.float64 if torch.float64 in inputs else to

    def linear(self, *inputs):
        return self.cast(self.low, *inputs)

    matmul = conv1d = attention = linear

    def softmax(self, *inputs):
        return self.cast(torch.float32, *inputs)

    layer_norm = group_norm = log_softmax = cross_entropy = mse_loss = softmax
    sum = cumsum = norm = exp = log = pow = rsqrt = softplus = softmax

    def embedding(self, index, table):
        return table

    def float(self, x):
        return torch.float32

    def add_(self, a, b):
        return a


def autocast_dtypes(ops, given, low):
    rules, seen, out = Rules(low), dict(given), {}
    for result, function, inputs in ops:
        seen[result] = out[result] = getattr(rules, function)(*map(seen.get, inputs))
    return out


def sum(values):
    return functools.reduce(lambda a, b: a + b, values)
