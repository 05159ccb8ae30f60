# hint: Positive and negative values cancel in a mean
def train(model, optimizer, batches, validation):
    x_val, y_val = validation
    losses, mags = [], []
    def record(layer, args, output):
        if layer.training:
            mags.append(output.detach().mean().abs().item())
    handle = model[1].register_forward_hook(record)
    for x, y in batches:
        model.train(True)
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            losses.append(F.mse_loss(model(x_val), y_val).item())
    handle.remove()
    return losses, mags
