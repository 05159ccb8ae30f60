# what is counted is added up in one tensor of four numbers
def train(device, weight, batches, lr):
    acc = torch.zeros(4, device=device)
    for x, y in batches:
        x = x.pin_memory().to(device, non_blocking=True)
        y = y.pin_memory().to(device, non_blocking=True)
        logits = F.linear(x, weight)
        loss = F.cross_entropy(logits, y, ignore_index=-100)
        ok = torch.isfinite(loss)
        (grad,) = torch.autograd.grad(loss, weight)
        with torch.no_grad():
            weight -= lr * torch.where(ok, grad, torch.zeros_like(grad))
            counts = (y != -100) & ok
            acc += torch.stack(
                [
                    torch.where(ok, loss, torch.zeros_like(loss)),
                    ok.float(),
                    ((logits.argmax(-1) == y) & counts).sum().float(),
                    counts.sum().float(),
                ]
            )
    loss, n, r, l = acc.tolist()
    return loss / n, r / l, len(batches) - int(n)
