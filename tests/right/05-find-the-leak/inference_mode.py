def train(model, optimizer, batches, validation):
    losses: list[float] = []
    outputs: list[float] = []
    @torch.no_grad()
    def keep(layer, args, output):
        if layer.training:
            outputs.append(output.abs().mean().item())
    handle = model[1].register_forward_hook(keep)
    try:
        for x, y in batches:
            model.train()
            for p in model.parameters():
                p.grad = None
            F.mse_loss(model(x), y).backward()
            optimizer.step()
            model.eval()
            with torch.inference_mode():
                losses += F.mse_loss(model(validation[0]), validation[1]).tolist(),
    finally:
        handle.remove()
    return losses, outputs
