def train_step(model, x, y, optimizer, scaler, max_norm, dtype):
    parameters = list(model.parameters())

    @torch.autocast(x.device.type, dtype)
    def forward():
        return model(x, y)

    loss = forward()
    for p, grad in zip(parameters, torch.autograd.grad(scaler.scale(loss), parameters)):
        p.grad = grad
    scaler.unscale_(optimizer)
    norm = sum(p.grad.pow(2).sum() for p in parameters).sqrt()
    for p in parameters:
        p.grad *= torch.clamp(max_norm / norm, max=1.0)
    scaler.step(optimizer)
    scaler.update()
    return loss
