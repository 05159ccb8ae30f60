# Gold: three sequences in each step, all at once, and more steps.
MACHINE = "basement"
STEPS = 240
CHANGED = "three sequences a step, all at once"
RATE = 1.8e-2


def setup(run):
    model = run.model(dtype=torch.bfloat16, attention="fused")
    return model, kit.Adafactor(model.parameters(), lr=RATE, beta=0.98)


def step(run, state, number):
    model, optimizer = state
    optimizer.lr = RATE * min(1, (number + 1) / 10) * min(1, 2 * (1 - number / STEPS))
    x, y = run.tokens(3)
    hidden = model.embed(x)
    for block in model.blocks:
        hidden = block(hidden)
    kit.chunked_loss(model.norm(hidden), model.head, y, 8).backward()
    optimizer.step()
    optimizer.zero_grad()
