# hint: The sum was divided by the number of all tokens
def chunked_loss(x, weight, labels, chunk_size, ignore_index=-100):
    total = 0
    for a, b in zip(x.split(chunk_size), labels.split(chunk_size)):
        losses = torch.nn.functional.cross_entropy(a @ weight.T, b, ignore_index=ignore_index, reduction="none")
        total = total + losses.mean() * len(a)
    return total / len(x)
