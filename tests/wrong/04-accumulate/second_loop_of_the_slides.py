# hint: cleared just before the step
def train_epoch(model, optimizer, loader, n_accumulate, max_norm, sum_over_ranks):
    for i, (x, y) in enumerate(loader):
        (F.cross_entropy(model(x).flatten(0, 1), y.flatten()) / n_accumulate).backward()
        if (i + 1) % n_accumulate == 0 or i + 1 == len(loader):
            optimizer.zero_grad()
            optimizer.step()
