# hint: The signal is biased
def noise_scale(micro_gradients, micro_batch):
    k = len(micro_gradients)
    of_one = float(micro_gradients.var(0).sum())
    signal = float(micro_gradients.mean(0).square().sum())
    return signal, micro_batch * of_one


def critical_batch(signals, noises):
    return sum(noises) / sum(signals)
