"""Two different micro-batches have noise that is independent: the mean product of such pairs is the signal."""


def noise_scale(micro_gradients, micro_batch):
    k = len(micro_gradients)
    products = micro_gradients @ micro_gradients.T
    of_one = products.diagonal().sum()
    signal = (products.sum() - of_one) / (k * (k - 1))
    return signal, micro_batch * (of_one / k - signal)


def critical_batch(signals, noises):
    return torch.tensor(noises).double().mean().item() / torch.tensor(signals).double().mean().item()
