def train_step(model, x, y, optimizer, scaler, max_norm, dtype):
    with torch.autocast(device_type=x.device.type, dtype=dtype, cache_enabled=False):
        loss = model(x, y)
    scaler.scale(loss).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm * scaler.get_scale())
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=False)
    return loss.item()
