MACHINE = "quad"
STEPS = 150
CHANGED = "nothing yet: float32, eager attention, AdamW, gradients summed over the cards"


def setup(run):
    model = run.model(dtype=torch.float32, attention="eager")
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2, foreach=False)


def step(run, state, number):
    model, optimizer = state
    x, y = run.tokens(2)
    kit.loss(model(x), y).backward()
    for p in model.parameters():
        run.all_reduce(p.grad).div_(run.world_size)
    optimizer.step()
    optimizer.zero_grad()
