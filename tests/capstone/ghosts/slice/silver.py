MACHINE = "slice"
STEPS = 330
CHANGED = "a higher rate that warms up and falls to 0 in the second half, so that fewer steps are enough"
RATE = 1.5e-2


def setup(run):
    model = run.model(dtype=torch.bfloat16, attention="fused")
    optimizer = kit.Adafactor(model.parameters(), lr=RATE, beta=0.98)
    kit.step_in_backward(model.parameters(), optimizer.update)
    return model, optimizer


def step(run, state, number):
    model, optimizer = state
    optimizer.lr = RATE * min(1, (number + 1) / 10) * min(1, 2 * (1 - number / STEPS))
    x, y = run.tokens(2)
    hidden = model.embed(x)
    for block in model.blocks:
        hidden = kit.checkpoint(block, hidden)
    kit.chunked_loss(model.norm(hidden), model.head, y, 8).backward()
