# hint: The largest part of the peak is activations. The attention keeps all its scores
MACHINE = "basement"
STEPS = 150
CHANGED = "nothing yet: float32, eager attention, AdamW, all sequences at once"


def setup(run):
    model = run.model(dtype=torch.float32, attention="eager")
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2, foreach=False)


def step(run, state, number):
    model, optimizer = state
    x, y = run.tokens(8)
    kit.loss(model(x), y).backward()
    optimizer.step()
    optimizer.zero_grad()
