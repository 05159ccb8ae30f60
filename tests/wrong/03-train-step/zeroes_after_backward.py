# hint: The weights never move
def train_step(model, x, y, optimizer, scaler, max_norm, dtype):
    with torch.autocast(x.device.type, dtype=dtype):
        loss = model(x, y)
    scaler.scale(loss).backward()
    optimizer.zero_grad()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.detach()
