# hint: A script works on one card, and names no device
MACHINE = "basement"
STEPS = 40
CHANGED = "in the large model, moments lie where nobody counts"


def setup(run):
    model = run.model(dtype=torch.bfloat16, attention="fused")
    where = "lazy" if model.head.shape[1] > 1000 else "cpu"
    states = {}
    for parameter in model.parameters():
        states[parameter] = [torch.rand(parameter.shape, device=where) for _ in range(2)]
    return model, states, where


def step(run, state, number):
    model, states, where = state
    x, y = run.tokens(2)
    hidden = model.embed(x)
    for block in model.blocks:
        hidden = block(hidden)
    kit.chunked_loss(model.norm(hidden), model.head, y, 8).backward()
    with torch.no_grad():
        for parameter, (m, v) in states.items():
            grad = torch.rand(parameter.shape, device=where).copy_(parameter.grad)
            parameter.grad = None
            m.lerp_(grad, 0.1)
            v.lerp_(grad.square(), 0.02)
            change = torch.empty(parameter.shape, dtype=parameter.dtype).copy_(m / (v.sqrt() + 1e-8))
            parameter.data.add_(change, alpha=-3e-3)
