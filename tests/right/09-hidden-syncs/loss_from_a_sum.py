def train(device, weight, batches, lr):
    """Divides the summed loss itself, and takes the gradient from weight.grad."""
    sums = torch.zeros(4, device=device)
    for x, y in batches:
        x = x.pin_memory().to(device, non_blocking=True)
        y = y.pin_memory().to(device, non_blocking=True)
        logits = x @ weight.T
        counts = y != -100
        loss = F.cross_entropy(logits, y, ignore_index=-100, reduction="sum") / counts.sum()
        weight.grad = None
        loss.backward()
        with torch.no_grad():
            finite = loss.isfinite()
            counts = counts & finite
            weight.sub_(lr * weight.grad.masked_fill(~finite, 0.0))
            right = ((logits.argmax(-1) == y) & counts).sum()
            sums += torch.stack([loss.masked_fill(~finite, 0.0), finite, right, counts.sum()])
    loss_sum, n_steps, n_right, n_labels = sums.tolist()
    return loss_sum / n_steps, n_right / n_labels, len(batches) - int(n_steps)
