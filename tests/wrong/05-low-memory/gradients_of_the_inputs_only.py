# hint: The parameters got no gradient
def low_memory_backward(layers, x):
    gradient, loss = None, None
    for k in range(len(layers) - 1, -1, -1):
        inner = x
        with torch.no_grad():
            for layer in layers[:k]:
                inner = layer(inner)
        inner = inner.detach().requires_grad_()
        out = layers[k](inner)
        loss = out.detach() if loss is None else loss
        (gradient,) = torch.autograd.grad(out, inner, gradient)
    return loss, gradient
