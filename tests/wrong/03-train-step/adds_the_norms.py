# hint: the right direction and the wrong length
def train_step(model, x, y, optimizer, scaler, max_norm, dtype):
    optimizer.zero_grad()
    with torch.autocast(x.device.type, dtype=dtype):
        loss = model(x, y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    grads = [p.grad for p in model.parameters()]
    total = sum(g.norm() for g in grads)
    factor = min(1.0, max_norm / (total.item() + 1e-6))
    for g in grads:
        g.mul_(factor)
    scaler.step(optimizer)
    scaler.update()
    return loss.detach()
