# hint: The first layer was never differentiated
def low_memory_backward(layers, x):
    gradient = None; loss = None
    for k in range(len(layers) - 1, 0, -1):
        inner = x
        with torch.no_grad():
            for layer in layers[:k]: inner = layer(inner)
        inner = inner.detach().requires_grad_()
        out = layers[k](inner)
        torch.autograd.backward(out, gradient)
        gradient = inner.grad
        if loss is None: loss = out.detach()
    return loss, gradient
