def reach(layers, x):
    return layers[-1](reach(layers[:-1], x)) if layers else x


def low_memory_backward(layers, x):
    loss, gradient = None, None
    todo = list(layers)
    while todo:
        last = todo.pop()
        with torch.no_grad():
            start = reach(todo, x).clone()
        start.requires_grad = True
        out = last(start)
        if loss is None:
            out.backward()
            loss = out.item()
        else:
            out.backward(gradient)
        gradient = start.grad.clone()
    return torch.tensor(loss), gradient
