# hint: There is no gradient
@torch.no_grad()
def chunked_loss(x, weight, labels, chunk_size, ignore_index=-100):
    total = torch.zeros(())
    for a, b in zip(x.split(chunk_size), labels.split(chunk_size)):
        total += torch.nn.functional.cross_entropy(a @ weight.T, b, ignore_index=ignore_index, reduction="sum")
    return total / (labels != ignore_index).sum()
