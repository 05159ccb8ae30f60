# hint: goes on from window to window
def train_epoch(model, optimizer, loader, n_accumulate, max_norm, sum_over_ranks):
    n = 0
    for i, (x, y) in enumerate(loader):
        n += int((y != -100).sum())
        F.cross_entropy(model(x).flatten(0, 1), y.flatten(), reduction="sum").backward()
        if (i + 1) % n_accumulate == 0 or i + 1 == len(loader):
            n_tokens = sum_over_ranks(n)
            for parameter in model.parameters():
                parameter.grad = sum_over_ranks(parameter.grad) / n_tokens
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            optimizer.step()
            optimizer.zero_grad()
