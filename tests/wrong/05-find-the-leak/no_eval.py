# hint: The model validates in training mode
def train(model, optimizer, batches, validation):
    losses, sizes = [], []
    x_val, y_val = validation

    def record(module, args, output):
        if module.training:
            sizes.append(output.detach().abs().mean().item())

    handle = model[1].register_forward_hook(record)
    for x, y in batches:
        model.train()
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
        with torch.no_grad():
            losses.append(F.mse_loss(model(x_val), y_val).item())
    handle.remove()
    return losses, sizes
