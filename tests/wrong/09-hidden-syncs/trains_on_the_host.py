# hint: Copy each batch to `device`
def train(device, weight, batches, lr):
    own = weight.detach().cpu().requires_grad_()
    losses, n_right, n_labels, n_skipped = [], 0, 0, 0
    for x, y in batches:
        logits = F.linear(x, own)
        counts = y != -100
        loss = F.cross_entropy(logits, y, ignore_index=-100)
        if not loss.isfinite():
            n_skipped += 1
            continue
        losses.append(loss.item())
        n_right += (logits.argmax(-1) == y)[counts].sum().item()
        n_labels += counts.sum().item()
        (grad,) = torch.autograd.grad(loss, own)
        with torch.no_grad():
            own -= lr * grad
    with torch.no_grad():
        weight.copy_(own)
    return sum(losses) / len(losses), n_right / n_labels, n_skipped
