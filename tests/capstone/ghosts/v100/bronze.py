MACHINE = "v100"
STEPS = 200
CHANGED = "products in float16 by autocast, over float32 weights; Adafactor; every block recomputed"
SCALE = 1024.0
RATE = 2e-2


def setup(run):
    model = run.model(dtype=torch.float32, attention="fused")
    return model, kit.Adafactor(model.parameters(), lr=RATE, beta=0.98)


def step(run, state, number):
    model, optimizer = state
    optimizer.lr = RATE * min(1, (number + 1) / 10) * min(1, 2 * (1 - number / STEPS))
    for _ in range(4):
        x, y = run.tokens(1)
        with kit.autocast(torch.float16):
            hidden = model.embed(x)
            for block in model.blocks:
                hidden = kit.checkpoint(block, hidden)
            loss = kit.loss(F.linear(model.norm(hidden), model.head), y)
        (loss * (SCALE / 4)).backward()
    for p in model.parameters():
        p.grad.div_(SCALE)
    optimizer.step()
    optimizer.zero_grad()
