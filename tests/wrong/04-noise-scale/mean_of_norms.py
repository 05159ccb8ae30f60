# hint: lengths of the micro-batches
def noise_scale(micro_gradients, micro_batch):
    k = len(micro_gradients)
    of_one = float(micro_gradients.var(0).sum())
    signal = float(micro_gradients.norm(dim=1).mean()) ** 2
    return signal, micro_batch * of_one


def critical_batch(signals, noises):
    return sum(noises) / sum(signals)
