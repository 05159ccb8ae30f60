class Window:
    def __init__(self, batches):
        self.batches = batches
        self.n = sum((y >= 0).sum().item() for x, y in batches)


def train_epoch(model, optimizer, loader, n_accumulate, max_norm, sum_over_ranks):
    batches = list(loader)
    for start in range(0, len(batches), n_accumulate):
        window = Window(batches[start : start + n_accumulate])
        total = sum_over_ranks(float(window.n))
        model.zero_grad()
        for x, y in window.batches:
            counted = y >= 0
            if counted.any():
                mean = F.cross_entropy(model(x)[counted], y[counted])
                (mean * (counted.sum() / total)).backward()
            else:
                (0 * model(x).sum()).backward()
        flat = sum_over_ranks(torch.cat([p.grad.flatten() for p in model.parameters()]))
        for p, grad in zip(model.parameters(), flat.split([p.numel() for p in model.parameters()])):
            p.grad = grad.view_as(p)
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
    model.zero_grad()
