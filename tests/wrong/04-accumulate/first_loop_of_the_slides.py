# hint: Two mistakes at once
def train_epoch(model, optimizer, loader, n_accumulate, max_norm, sum_over_ranks):
    for i, (x, y) in enumerate(loader):
        F.cross_entropy(model(x).flatten(0, 1), y.flatten()).backward()
        if (i + 1) % n_accumulate == 0:
            for p in model.parameters():
                p.grad = sum_over_ranks(p.grad)
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            optimizer.step()
            optimizer.zero_grad()
