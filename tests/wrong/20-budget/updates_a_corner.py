# hint: What a step does may not depend on the size of the model
MACHINE = "basement"
STEPS = 40
CHANGED = "a wrong answer"


def setup(run):
    model = run.model(dtype=torch.bfloat16, attention="fused")
    parts = [nn.Parameter(p.data.split(128)[0]) for p in model.parameters()]
    return model, kit.Adafactor(parts, lr=2e-2)


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
    for p, part in zip(model.parameters(), optimizer.parameters):
        part.grad = p.grad.split(128)[0]
        p.data.mul_(1)
    optimizer.step()
    for p in [*model.parameters(), *optimizer.parameters]:
        p.grad = None
