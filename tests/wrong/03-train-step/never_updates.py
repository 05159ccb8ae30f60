# hint: call scaler.update() once
def train_step(model, x, y, optimizer, scaler, max_norm, dtype):
    optimizer.zero_grad()
    with torch.autocast(x.device.type, dtype=dtype):
        loss = model(x, y)
    scale = scaler.get_scale()
    (loss * scale).backward()
    for p in model.parameters():
        p.grad /= scale
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    if norm.isfinite():
        optimizer.step()
    return loss.detach()
