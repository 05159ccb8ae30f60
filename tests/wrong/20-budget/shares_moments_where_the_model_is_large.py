# hint: What a step does may not depend on the size of the model
MACHINE = "basement"
STEPS = 40
CHANGED = "in the large model, weights of one shape have their moments in one memory"
RATE = 3e-3


def setup(run):
    model = run.model(dtype=torch.bfloat16, attention="fused")
    states, shared = {}, {}
    large = model.head.shape[1] > 1000
    for parameter in model.parameters():
        m = torch.zeros(parameter.shape, dtype=torch.float32)
        v = torch.zeros(parameter.shape, dtype=torch.float32)
        if large:
            m, v = shared.setdefault(parameter.shape, (m, v))
        states[parameter] = (m, v)
    return model, states


def step(run, state, number):
    model, states = state
    rate = RATE * min(1, (number + 1) / 10) * min(1, 2 * (1 - number / STEPS))
    x, y = run.tokens(2)
    hidden = model.embed(x)
    for block in model.blocks:
        hidden = block(hidden)
    kit.chunked_loss(model.norm(hidden), model.head, y, 8).backward()
    with torch.no_grad():
        for parameter, (m, v) in states.items():
            grad = parameter.grad.float()
            m.lerp_(grad, 0.1)
            v.lerp_(grad * grad, 0.02)
            parameter.data.add_(m / (v.sqrt() + 1e-8), alpha=-rate)
            parameter.grad = None
