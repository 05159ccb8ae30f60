# hint: The loss is NaN
MACHINE = "basement"
STEPS = 10
CHANGED = "bf16 weights, 8-bit states, every block recomputed, the loss in chunks, 4 micro-batches"
MICRO_BATCHES = 4


def setup(run):
    model = run.model(dtype=torch.bfloat16, attention="fused")
    return model, torch.optim.SGD(model.parameters(), lr=30.0)


def step(run, state, number):
    model, optimizer = state
    for _ in range(MICRO_BATCHES):
        x, y = run.tokens(2)
        hidden = model.embed(x)
        for block in model.blocks:
            hidden = kit.checkpoint(block, hidden)
        loss = kit.chunked_loss(model.norm(hidden), model.head, y, 8)
        (loss / MICRO_BATCHES).backward()
    optimizer.step()
    optimizer.zero_grad()
