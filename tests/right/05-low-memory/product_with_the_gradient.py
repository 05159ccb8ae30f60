def low_memory_backward(layers, x):
    dx, total = torch.ones(()), None
    for k in range(len(layers))[::-1]:
        a = x.detach()
        with torch.inference_mode(False), torch.set_grad_enabled(False):
            for f in layers[:k]:
                a = f(a)
        a = a.detach().requires_grad_(True)
        b = layers[k](a)
        if total is None:
            total = b.detach().clone()
        (b * dx).sum().backward()
        dx = a.grad
        del a, b
    return total, dx
