# hint: each call holds its variables until the inner one returns
def low_memory_backward(layers, x):
    from functools import reduce

    *before, last = layers
    with torch.no_grad():
        inner = reduce(lambda value, layer: layer(value), before, x)
    inner = inner.detach().requires_grad_()
    loss = last(inner)
    loss.backward()

    def back(layers, gradient):
        if not layers:
            return gradient
        *before, last = layers
        with torch.no_grad():
            inner = reduce(lambda value, layer: layer(value), before, x)
        inner = inner.detach().requires_grad_()
        last(inner).backward(gradient)
        gradient = inner.grad
        del inner
        return back(before, gradient)

    gradient = inner.grad
    del inner
    return loss.detach(), back(before, gradient)
