# hint: A script patches nothing
MACHINE = "quad"
STEPS = 40
CHANGED = "the cards leave their gradients with a function that all of them have"


def setup(run):
    board = kit.Muon.update
    board.data = {}
    model = run.model(dtype=torch.bfloat16, attention="fused")
    return model, kit.Adafactor(model.parameters(), lr=1.8e-2, beta=0.98), torch.zeros(1), board


def step(run, state, number):
    model, optimizer, bell, board = state
    x, y = run.tokens(1)
    kit.loss(model(x), y).backward()
    for place, parameter in enumerate(model.parameters()):
        board.data[place, run.rank] = parameter.grad
    run.all_reduce(bell)
    for place, parameter in enumerate(model.parameters()):
        theirs = [board.data.get((place, other), parameter.grad) for other in range(run.world_size)]
        parameter.grad = sum(theirs) / run.world_size
    run.all_reduce(bell)
    optimizer.step()
    optimizer.zero_grad()
