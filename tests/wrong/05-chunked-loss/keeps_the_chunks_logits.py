# hint: More than dx + 2 dW + max(4 * chunk
def chunked_loss(x, weight, labels, chunk_size, ignore_index=-100):
    total = 0
    for a, b in zip(x.split(chunk_size), labels.split(chunk_size)):
        logits = a @ weight.T
        total = total + torch.nn.functional.cross_entropy(logits, b, ignore_index=ignore_index, reduction="sum")
    return total / (labels != ignore_index).sum()
