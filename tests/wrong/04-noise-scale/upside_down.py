# hint: upside down
def noise_scale(micro_gradients, micro_batch):
    k = len(micro_gradients)
    of_one = float(micro_gradients.var(0).sum())
    signal = float(micro_gradients.mean(0).square().sum()) - of_one / k
    return signal, micro_batch * of_one


def critical_batch(signals, noises):
    return sum(signals) / sum(noises)
