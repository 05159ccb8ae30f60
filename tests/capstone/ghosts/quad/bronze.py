MACHINE = "quad"
STEPS = 200
CHANGED = "bf16 weights and 8-bit states on every card, every block recomputed, gradients summed over the cards"
RATE = 1e-2


def setup(run):
    model = run.model(dtype=torch.bfloat16, attention="fused")
    return model, kit.AdamW8bit(model.parameters(), lr=RATE)


def step(run, state, number):
    model, optimizer = state
    optimizer.lr = RATE * min(1, (number + 1) / 10) * min(1, 2 * (1 - number / STEPS))
    x, y = run.tokens(1)
    hidden = model.embed(x)
    for block in model.blocks:
        hidden = kit.checkpoint(block, hidden)
    kit.chunked_loss(model.norm(hidden), model.head, y, 8).backward()
    for p in model.parameters():
        run.all_reduce(p.grad).div_(run.world_size)
    optimizer.step()
    optimizer.zero_grad()
