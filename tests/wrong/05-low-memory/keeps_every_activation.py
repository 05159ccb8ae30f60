# hint: Every layer ran once
def low_memory_backward(layers, x):
    x = x.detach().requires_grad_()
    out = x
    for layer in layers:
        out = layer(out)
    out.backward()
    return out.detach(), x.grad
