# hint: One whole forward pass too many
def low_memory_backward(layers, x):
    with torch.no_grad():
        loss = x
        for layer in layers:
            loss = layer(loss)
    gradient = torch.ones_like(loss)
    for k in range(len(layers) - 1, -1, -1):
        inner = x
        with torch.no_grad():
            for layer in layers[:k]:
                inner = layer(inner)
        inner = inner.detach().requires_grad_()
        torch.autograd.backward(layers[k](inner), gradient)
        gradient = inner.grad
    return loss, gradient
