# hint: Every step trains the whole model on every token that it takes
MACHINE = "basement"
STEPS = 40
CHANGED = "a wrong answer"


def setup(run):
    model = run.model(dtype=torch.bfloat16, attention="fused")
    return model, kit.Adafactor(model.blocks[0].parameters(), lr=2e-2)


def step(run, state, number):
    model, optimizer = state
    optimizer.lr = 2e-2 * min(1, (number + 1) / 10) * min(1, 2 * (1 - number / STEPS))
    for _ in range(2):
        x, y = run.tokens(2)
        hidden = model.embed(x)
        for block in model.blocks:
            hidden = block(hidden)
        loss = kit.chunked_loss(model.norm(hidden), model.head, y, 8)
        (loss / 2).backward()
    for p in model.parameters():
        run.all_reduce(p.data)
    optimizer.step()
    for p in model.parameters():
        p.grad = None
