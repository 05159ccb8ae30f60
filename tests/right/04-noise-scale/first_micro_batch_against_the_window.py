def noise_scale(micro_gradients, micro_batch):
    k = len(micro_gradients)
    small, large = micro_gradients[0].square().sum(), micro_gradients.mean(0).square().sum()
    signal = (k * large - small) / (k - 1)
    return float(signal), float((small - signal) * micro_batch)


def critical_batch(signals, noises):
    return (sum(noises) / len(noises)) / (sum(signals) / len(signals))
