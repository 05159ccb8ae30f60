# hint: which a second loop finds empty
def merge_stats(first, second):
    top = torch.maximum(first[0], second[0])
    base = torch.where(top == -torch.inf, 0.0, top)
    return top, first[1] * torch.exp(first[0] - base) + second[1] * torch.exp(second[0] - base)


def softmax_stats(blocks):
    top = None
    for block in blocks:
        of_block = block.float().amax(1)
        top = of_block if top is None else torch.maximum(top, of_block)
    base = torch.where(top == -torch.inf, 0.0, top)
    total = torch.zeros_like(top)
    for block in blocks:
        total += torch.exp(block.float() - base[:, None]).sum(1)
    return top, total
