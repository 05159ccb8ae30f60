# hint: and here it has 0
def merge_stats(first, second):
    top = torch.maximum(first[0], second[0])
    base = torch.where(top == -torch.inf, 0.0, top)
    return base, first[1] * torch.exp(first[0] - base) + second[1] * torch.exp(second[0] - base)


def softmax_stats(blocks):
    top, total = None, 0.0
    for block in blocks:
        block = block.float()
        new = block.amax(1) if top is None else torch.maximum(top, block.amax(1))
        base = torch.where(new == -torch.inf, 0.0, new)
        old = 0.0 if top is None else total * torch.exp(top - base)
        total = old + torch.exp(block - base[:, None]).sum(1)
        top = new
    return torch.where(top == -torch.inf, 0.0, top), total
