import statistics


def noise_scale(micro_gradients, micro_batch):
    small, big = micro_batch, micro_batch * len(micro_gradients)
    of_small = sum(g.norm() ** 2 for g in micro_gradients) / len(micro_gradients)
    of_big = (sum(micro_gradients) / len(micro_gradients)).norm() ** 2
    return (big * of_big - small * of_small) / (big - small), (of_small - of_big) / (1 / small - 1 / big)


def critical_batch(signals, noises):
    return statistics.fmean(noises) / statistics.fmean(signals)
