# hint: The validation losses still hold their graphs
def train(model, optimizer, batches, validation):
    x_val, y_val = validation
    losses, outputs = [], []

    def record(module, args, output):
        if module.training:
            outputs.append(output)

    model[1].register_forward_hook(record)
    for x, y in batches:
        model.train()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        model.eval()
        losses.append(F.mse_loss(model(x_val), y_val))
    return losses, [output.abs().mean() for output in outputs]
