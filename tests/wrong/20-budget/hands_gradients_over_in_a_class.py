# hint: A script patches nothing
MACHINE = "quad"
STEPS = 40
CHANGED = "gradients are handed over in a class that all cards have"
RATE = 1.8e-2


def setup(run):
    model = run.model(dtype=torch.bfloat16, attention="fused")
    return model, kit.Adafactor(model.parameters(), lr=RATE, beta=0.98), torch.zeros(1)


def step(run, state, number):
    model, optimizer, bell = state
    optimizer.lr = RATE * min(1, (number + 1) / 10) * min(1, 2 * (1 - number / STEPS))
    x, y = run.tokens(1)
    hidden = model.embed(x)
    for block in model.blocks:
        hidden = block(hidden)
    kit.chunked_loss(model.norm(hidden), model.head, y, 8).backward()
    board = kit.Muon
    for parameter in model.parameters():
        with torch.no_grad():
            mine = [parameter.grad.clone() for _ in range(run.world_size)][run.rank]
            run.all_reduce(bell)
            if not isinstance(board.zero_grad, dict):
                board.zero_grad = {}
            board.zero_grad[run.rank] = mine
            run.all_reduce(bell)
            parameter.grad.zero_()
            for other in range(run.world_size):
                parameter.grad.add_(board.zero_grad.get(other, mine), alpha=1 / run.world_size)
            run.all_reduce(bell)
            board.zero_grad = kit.AdamW.zero_grad
            run.all_reduce(bell)
    optimizer.step()
    optimizer.zero_grad()
