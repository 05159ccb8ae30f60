from contextlib import contextmanager


@contextmanager
def recording(module):
    found = []
    handle = module.register_forward_hook(lambda m, a, out: found.append(out.detach().abs().mean().item()))
    try:
        yield found
    finally:
        handle.remove()


@torch.inference_mode()
def evaluate(model, x, y):
    model.eval()
    return nn.functional.mse_loss(model(x), y).item()


def train(model, optimizer, batches, validation):
    sizes, losses = [], []
    for x, y in batches:
        model.train()
        with recording(model[1]) as found:
            loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        sizes += found
        losses.append(evaluate(model, *validation))
    return tuple(losses), sizes
