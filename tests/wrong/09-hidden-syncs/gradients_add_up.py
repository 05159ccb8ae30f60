# hint: Gradients add up in weight.grad
def train(device, weight, batches, lr):
    rows = []
    total = torch.zeros_like(weight)
    for x, y in batches:
        x, y = (one.pin_memory().to(device, non_blocking=True) for one in (x, y))
        logits = F.linear(x, weight)
        loss = F.cross_entropy(logits, y)
        (grad,) = torch.autograd.grad(loss, weight)
        with torch.no_grad():
            # As .backward() does it, where nobody sets the gradient to None.
            total += torch.where(loss.isfinite(), grad, 0.0)
            weight -= lr * torch.where(loss.isfinite(), total, 0.0)
            rows.append((loss.detach(), (logits.argmax(-1) == y).sum(), (y != -100).sum()))
    rows = [[one.item() for one in row] for row in rows]
    kept = [row for row in rows if math.isfinite(row[0])]
    accuracy = sum(row[1] for row in kept) / sum(row[2] for row in kept)
    return sum(row[0] for row in kept) / len(kept), accuracy, len(rows) - len(kept)
