# hint: Every step trains the whole model on every token that it takes
MACHINE = "basement"
STEPS = 40
CHANGED = "a wrong answer"


def setup(run):
    model = run.model(dtype=torch.bfloat16, attention="fused")
    flat = torch.empty(sum(p.numel() for p in model.parameters()), dtype=torch.bfloat16)
    at = 0
    for p in model.parameters():
        part = flat[at : at + p.numel()].view(p.shape)
        part.copy_(p.data)
        p.data = part
        at += p.numel()
    return model, kit.Adafactor([model.head, *model.blocks[0].parameters()], lr=2e-2)


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
    optimizer.step()
    for p in model.parameters():
        p.grad = None
