# hint: What is held grows with the number of layers
def low_memory_backward(layers, x):
    gradient, loss = None, None
    for k in range(len(layers) - 1, -1, -1):
        inner = x
        for layer in layers[:k]:
            inner = layer(inner)
        leaf = inner.detach().requires_grad_()
        out = layers[k](leaf)
        loss = out.detach() if loss is None else loss
        torch.autograd.backward(out, gradient)
        gradient = leaf.grad
    return loss, gradient
