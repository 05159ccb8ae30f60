# hint: Loading and training still take turns
def prefetch(load, n, depth, clock):
    for index in range(n):
        yield load(index)


def loader_plan(sample_ms, batch_size, step_ms, prefetch_factor, sample_bytes):
    n_workers = -(-batch_size * sample_ms // step_ms)
    return n_workers, n_workers * prefetch_factor * batch_size * sample_bytes
