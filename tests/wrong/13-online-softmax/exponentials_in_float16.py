# hint: were rounded to float16
def merge_stats(first, second):
    top = torch.maximum(first[0], second[0])
    base = torch.where(top == -torch.inf, 0.0, top)
    return top, first[1] * torch.exp(first[0] - base) + second[1] * torch.exp(second[0] - base)
def softmax_stats(blocks):
    s = None
    for b in blocks:
        t = b.amax(1)
        base = torch.where(t == -torch.inf, 0.0, t)
        n = (t.float(), torch.exp(b - base[:, None]).float().sum(1))
        s = n if s is None else merge_stats(s, n)
    return s
