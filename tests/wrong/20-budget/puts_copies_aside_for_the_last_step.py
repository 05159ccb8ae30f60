# hint: What a script keeps from step to step is on its bill
MACHINE = "basement"
STEPS = 40
CHANGED = "copies of the weights are put aside, and used in the last step alone"
RATE = 1.8e-2
KEPT = 8


def setup(run):
    model = run.model(dtype=torch.bfloat16, attention="fused")
    return model, kit.Adafactor(model.parameters(), lr=RATE, beta=0.98), []


def step(run, state, number):
    model, optimizer, parked = state
    optimizer.lr = RATE * min(1, (number + 1) / 10) * min(1, 2 * (1 - number / STEPS))
    x, y = run.tokens(2)
    hidden = model.embed(x)
    for block in model.blocks:
        hidden = block(hidden)
    kit.chunked_loss(model.norm(hidden), model.head, y, 8).backward()
    optimizer.step()
    optimizer.zero_grad()
    with torch.no_grad():
        for place, parameter in enumerate(model.parameters()):
            copy = parameter.clone()
            if number % 4 == 3:
                parked.append((place, copy))
            mine = [one for at, one in parked if at == place] if number == STEPS - 1 else []
            for n in range(KEPT):
                other = mine[n] if n < len(mine) else copy
                parameter.data.lerp_(other, 1 / (n + 2))
