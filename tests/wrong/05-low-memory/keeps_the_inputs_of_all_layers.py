# hint: What is held grows with the number of layers
def low_memory_backward(layers, x):
    gradient, loss, leaves = None, None, []
    for k in range(len(layers) - 1, -1, -1):
        inner = x
        with torch.no_grad():
            for layer in layers[:k]:
                inner = layer(inner)
        leaves.append(inner.detach().requires_grad_())
        out = layers[k](leaves[-1])
        loss = out.detach() if loss is None else loss
        torch.autograd.backward(out, gradient)
        gradient = leaves[-1].grad
    return loss, gradient
