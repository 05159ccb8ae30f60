MACHINE = "v100"
STEPS = 200
CHANGED = "weights in float16 with a scaled loss; nothing is recomputed, all four sequences at once"
SCALE = 1024.0
RATE = 2e-2


def setup(run):
    model = run.model(dtype=torch.float16, attention="fused")
    return model, kit.Adafactor(model.parameters(), lr=RATE, beta=0.98)


def step(run, state, number):
    model, optimizer = state
    optimizer.lr = RATE * min(1, (number + 1) / 10) * min(1, 2 * (1 - number / STEPS))
    x, y = run.tokens(4)
    hidden = model.embed(x)
    for block in model.blocks:
        hidden = block(hidden)
    loss = kit.chunked_loss(model.norm(hidden), model.head, y, 8)
    (loss * SCALE).backward()
    for p in model.parameters():
        p.grad.div_(SCALE)
    optimizer.step()
    optimizer.zero_grad()
