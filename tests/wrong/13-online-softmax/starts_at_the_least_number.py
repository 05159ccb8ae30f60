# hint: A row of -inf alone has the maximum -inf
def merge_stats(first, second):
    top = torch.maximum(first[0], second[0])
    base = torch.where(top == -torch.inf, 0.0, top)
    return top, first[1] * torch.exp(first[0] - base) + second[1] * torch.exp(second[0] - base)
def softmax_stats(blocks):
    top = None
    for b in blocks:
        b = b.float()
        if top is None:
            top = torch.full((len(b),), torch.finfo(torch.float32).min); total = torch.zeros(len(b))
        new = torch.maximum(top, b.amax(1))
        total = total * torch.exp(top - new) + torch.exp(b - new[:, None]).sum(1)
        top = new
    return top, total
