# hint: More than dx + 2 dW + max(4 * chunk
def chunked_loss(x, weight, labels, chunk_size, ignore_index=-100):
    return torch.nn.functional.cross_entropy(x @ weight.T, labels, ignore_index=ignore_index)
