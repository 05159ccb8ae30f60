# hint: The last layer's gradients were added once for each layer
def low_memory_backward(layers, x):
    "n backward passes through the whole tail: from k to the end"
    n = len(layers)
    for k in reversed(range(n)):
        inner = x
        with torch.no_grad():
            for layer in layers[:k]: inner = layer(inner)
        inner = inner.detach().requires_grad_()
        out = inner
        for layer in layers[k:]: out = layer(out)
        out.backward()
    return out.detach(), inner.grad
