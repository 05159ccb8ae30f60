# hint: Every step trains the whole model on every token that it takes
MACHINE = "basement"
STEPS = 40
CHANGED = "one block learns, and products that nobody uses stand in for the others"
RATE = 1.8e-2


def setup(run):
    model = run.model(dtype=torch.bfloat16, attention="fused")
    learn = [*model.tokens.parameters(), *model.positions.parameters(), *model.blocks[0].parameters()]
    learn += list(model.norm.parameters())
    rest = [one for block in model.blocks[1:] for one in block.parameters()]
    return model, kit.Adafactor(learn, lr=RATE, beta=0.98), rest


def step(run, state, number):
    model, optimizer, rest = state
    optimizer.lr = RATE * min(1, (number + 1) / 10) * min(1, 2 * (1 - number / STEPS))
    x, y = run.tokens(3)
    hidden = model.blocks[0](model.embed(x))
    kit.chunked_loss(model.norm(hidden), model.head, y, 8).backward()
    optimizer.step()
    optimizer.zero_grad()
    with torch.no_grad():
        for weight in rest:
            weight.zero_()
        rows, up = hidden.view(-1, hidden.shape[-1]), model.blocks[0].up.weight
        for _ in range(27):
            torch.mm(rows, up.T)
        heads = hidden.view(*hidden.shape[:2], model.blocks[0].n_heads, -1).transpose(1, 2)
        for _ in range(3):
            F.scaled_dot_product_attention(heads, heads, heads, is_causal=True)
