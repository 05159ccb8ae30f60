# hint: The weights are no longer float32
def train_step(model, x, y, optimizer, scaler, max_norm, dtype):
    optimizer.zero_grad()
    model.to(dtype)
    loss = model(x.to(dtype), y).float()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    if loss.isfinite():
        optimizer.step()
    return loss.detach()
