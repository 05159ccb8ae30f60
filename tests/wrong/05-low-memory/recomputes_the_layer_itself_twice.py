# hint: One whole forward pass too many
def low_memory_backward(layers, x):
    gradient, loss = None, None
    for k in range(len(layers), 0, -1):
        inner = x
        before = None
        with torch.no_grad():
            for layer in layers[:k]:
                before, inner = inner, layer(inner)
        before = before.detach().requires_grad_()
        out = layers[k - 1](before)
        loss = out.detach() if loss is None else loss
        torch.autograd.backward(out, gradient)
        gradient = before.grad
    return loss, gradient
