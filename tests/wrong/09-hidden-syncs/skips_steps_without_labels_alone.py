# hint: a step with labels can have it too
def train(device, weight, batches, lr):
    rows = []
    for x, y in batches:
        x, y = (one.pin_memory().to(device, non_blocking=True) for one in (x, y))
        logits = F.linear(x, weight)
        loss = F.cross_entropy(logits, y)
        (grad,) = torch.autograd.grad(loss, weight)
        with torch.no_grad():
            n_labels = (y != -100).sum()
            weight -= lr * torch.where(n_labels > 0, grad, 0.0)
            rows.append((loss.detach(), (logits.argmax(-1) == y).sum(), n_labels))
    rows = [[one.item() for one in row] for row in rows]
    kept = [row for row in rows if row[2]]
    accuracy = sum(row[1] for row in kept) / sum(row[2] for row in kept)
    return sum(row[0] for row in kept) / len(kept), accuracy, len(rows) - len(kept)
