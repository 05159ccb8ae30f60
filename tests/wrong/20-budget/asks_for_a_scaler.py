# hint: There is no scaler here, because it reads values and skips steps
MACHINE = "v100"
STEPS = 200
CHANGED = "a wrong answer"


def setup(run):
    model = run.model(dtype=torch.float16, attention="fused")
    scaler = torch.amp.GradScaler("cpu")
    return model, scaler, kit.Adafactor(model.parameters(), lr=2e-2)


def step(run, state, number):
    model, scaler, optimizer = state
    x, y = run.tokens(4)
    scaler.scale(kit.loss(model(x), y)).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
