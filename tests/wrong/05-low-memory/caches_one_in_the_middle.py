# hint: an activation between was kept
def low_memory_backward(layers, x):
    n = len(layers)
    middle = n // 2
    with torch.no_grad():
        kept = x
        for layer in layers[:middle]:
            kept = layer(kept)
    gradient, loss = None, None
    for k in range(n - 1, -1, -1):
        start, inner = (middle, kept) if k >= middle else (0, x)
        with torch.no_grad():
            for layer in layers[start:k]:
                inner = layer(inner)
        inner = inner.detach().requires_grad_()
        out = layers[k](inner)
        loss = out.detach() if loss is None else loss
        torch.autograd.backward(out, gradient)
        gradient = inner.grad
    return loss, gradient
