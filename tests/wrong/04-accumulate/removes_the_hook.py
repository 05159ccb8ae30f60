# hint: Leave the hooks
def train_epoch(model, optimizer, loader, n_accumulate, max_norm, sum_over_ranks):
    def step(window):
        n = sum_over_ranks(sum(int((y != -100).sum()) for _, y in window))
        total = sum(F.cross_entropy(model(x).flatten(0, 1), y.flatten(), reduction="sum") for x, y in window)
        (total / n).backward()
        for p in model.parameters():
            p.grad = sum_over_ranks(p.grad)
        nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        optimizer.zero_grad()

    for module in model:
        module._forward_hooks.clear()
    window = []
    for pair in loader:
        window.append(pair)
        if len(window) == n_accumulate:
            step(window)
            window = []
    if window:
        step(window)
