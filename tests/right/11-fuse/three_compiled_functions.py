# Each of them compiled by itself; called in a compiled function, they are one graph.
f = torch.compile(nn.functional.silu)
g = torch.compile(lambda y: nn.functional.leaky_relu(y, 0.1))
h = torch.compile(lambda a, b, scale: torch.hypot(a, b).clamp(max=4.0) * scale)


def fused(x, y, scale):
    return h(f(x), g(y), scale)
