# hint: From the second step on the model trains in evaluation mode
def train(model, optimizer, batches, validation):
    x_val, y_val = validation
    losses, mags = [], []
    def record(layer, args, output):
        if torch.is_grad_enabled():
            mags.append(output.detach().abs().mean().item())
    handle = model[1].register_forward_hook(record)
    model.train(True)
    for x, y in batches:
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            losses.append(F.mse_loss(model(x_val), y_val).item())
    handle.remove()
    return losses, mags
