MACHINE = "quad"
STEPS = 200
CHANGED = "each card updates a quarter of every matrix (ZeRO-1) by Adafactor; nothing is recomputed"
RATE = 2e-2


def setup(run):
    model = run.model(dtype=torch.bfloat16, attention="fused")
    parts, wholes = [], []
    for p in model.parameters():
        n = p.shape[0] // run.world_size
        part = nn.Parameter(p.data[run.rank * n : (run.rank + 1) * n].clone())
        parts.append(part)
        wholes.append(p)
    return model, wholes, parts, kit.Adafactor(parts, lr=RATE, beta=0.98)


def step(run, state, number):
    model, wholes, parts, optimizer = state
    optimizer.lr = RATE * min(1, (number + 1) / 10) * min(1, 2 * (1 - number / STEPS))
    x, y = run.tokens(1)
    hidden = model.embed(x)
    for block in model.blocks:
        hidden = block(hidden)
    kit.chunked_loss(model.norm(hidden), model.head, y, 8).backward()
    for whole, part in zip(wholes, parts):
        part.grad = run.reduce_scatter(whole.grad).div_(run.world_size)
        whole.grad = None
        optimizer.update(part)
        part.grad = None
        whole.data.copy_(run.all_gather(part.data))
