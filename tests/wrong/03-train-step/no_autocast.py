# hint: The forward pass ran in float32
def train_step(model, x, y, optimizer, scaler, max_norm, dtype):
    optimizer.zero_grad()
    loss = model(x, y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.detach()
