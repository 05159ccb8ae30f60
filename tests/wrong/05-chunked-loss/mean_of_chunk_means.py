# hint: That is the mean of the chunks' means
def chunked_loss(x, weight, labels, chunk_size, ignore_index=-100):
    total, n = 0, 0
    for a, b in zip(x.split(chunk_size), labels.split(chunk_size)):
        total = total + torch.nn.functional.cross_entropy(a @ weight.T, b, ignore_index=ignore_index)
        n += 1
    return total / n
