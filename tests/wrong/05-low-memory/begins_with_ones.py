# hint: Each layer's backward pass began with ones
def low_memory_backward(layers, x):
    gradient = None; loss = None
    for k in reversed(range(len(layers))):
        inner = x
        with torch.no_grad():
            for layer in layers[:k]: inner = layer(inner)
        inner = inner.detach().requires_grad_()
        out = layers[k](inner)
        out.sum().backward()
        gradient = inner.grad
        if loss is None: loss = out.detach()
    return loss, gradient
