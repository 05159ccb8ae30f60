# hint: keep it in the first turn
def low_memory_backward(layers, x):
    gradient = None; loss = None
    for k in reversed(range(len(layers))):
        inner = x
        with torch.no_grad():
            for layer in layers[:k]: inner = layer(inner)
        inner = inner.detach().requires_grad_()
        out = layers[k](inner)
        torch.autograd.backward(out, gradient)
        gradient = inner.grad
        loss = out.detach()
    return loss, gradient
