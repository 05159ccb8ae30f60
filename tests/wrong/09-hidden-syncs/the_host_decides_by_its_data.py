# hint: A loss of inf is not finite either
def train(device, weight, batches, lr):
    totals = torch.zeros(2, device=device)
    n_labels = n_steps = 0
    for x, y in batches:
        counts = y != -100
        n = int(counts.sum())
        if n == 0 or not bool(x.isfinite().all()):
            continue
        n_labels, n_steps = n_labels + n, n_steps + 1
        x = x[counts].pin_memory().to(device, non_blocking=True)
        y = y[counts].pin_memory().to(device, non_blocking=True)
        logits = F.linear(x, weight)
        loss = F.cross_entropy(logits, y)
        (grad,) = torch.autograd.grad(loss, weight)
        with torch.no_grad():
            weight.sub_(grad, alpha=lr)
            totals += torch.stack((loss, (logits.argmax(-1) == y).sum()))
    loss_sum, n_right = totals.tolist()
    return loss_sum / n_steps, n_right / n_labels, len(batches) - n_steps
