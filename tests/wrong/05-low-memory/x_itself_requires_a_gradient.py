# hint: A second call with the same x gives another gradient
def low_memory_backward(layers, x):
    gradient = None; loss = None
    for k in reversed(range(len(layers))):
        inner = x
        with torch.no_grad():
            for layer in layers[:k]: inner = layer(inner)
        inner.requires_grad_()
        out = layers[k](inner)
        torch.autograd.backward(out, gradient)
        gradient = inner.grad
        if loss is None: loss = out.detach()
    return loss, gradient
