# one term after the other in float32, rounded at each of them, and a shortcut for an axis of length 1
def rms(x, dim=-1):
    if x.shape[dim] == 1:
        return x.abs().squeeze(dim)
    root = None
    for part in x.unbind(dim):
        root = part.float().abs() if root is None else torch.hypot(root, part.float())
    return root.div(x.shape[dim] ** 0.5).type_as(x)
