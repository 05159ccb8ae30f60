MACHINE = "slice"
STEPS = 400
CHANGED = "bf16 weights, each updated in the backward pass by Adafactor; every block recomputed; the rate falls to 0"
RATE = 1e-2


def setup(run):
    model = run.model(dtype=torch.bfloat16, attention="fused")
    optimizer = kit.Adafactor(model.parameters(), lr=RATE, beta=0.98)
    kit.step_in_backward(model.parameters(), optimizer.update)
    return model, optimizer


def step(run, state, number):
    model, optimizer = state
    optimizer.lr = RATE * (1 - number / STEPS)
    x, y = run.tokens(2)
    hidden = model.embed(x)
    for block in model.blocks:
        hidden = kit.checkpoint(block, hidden)
    kit.chunked_loss(model.norm(hidden), model.head, y, 8).backward()
