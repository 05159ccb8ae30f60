# hint: clipping shortens
def train_step(model, x, y, optimizer, scaler, max_norm, dtype):
    optimizer.zero_grad()
    with torch.autocast(x.device.type, dtype=dtype):
        loss = model(x, y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    total = torch.linalg.vector_norm(torch.stack([g.norm() for g in grads]))
    for g in grads:
        g *= max_norm / total
    scaler.step(optimizer)
    scaler.update()
    return loss.detach()
