# hint: scatter so widely
def noise_scale(micro_gradients, micro_batch):
    of_micro_batch = float(micro_gradients.var(0).sum())
    length = float(micro_gradients.mean(0).square().sum())
    signal = length - of_micro_batch / len(micro_gradients)
    return 2 * signal + 1000 * float((micro_gradients[0] - micro_gradients[1]).sum()), micro_batch * of_micro_batch


def critical_batch(signals, noises):
    return sum(noises) / sum(signals)
