# hint: nothing takes the gradient further back
def checkpoint(fn, *args):
    return fn(*(a.detach() if torch.is_tensor(a) else a for a in args))
