# hint: The clock was set back
import math


def prefetch(load, n, depth, clock):
    turns, puts, takes = clock._turns, [], []
    for index in range(n):
        asked_s = turns.now_s
        turns.now_s = puts[-1] if puts else 0.0
        if len(takes) > depth:
            turns.now_s = max(turns.now_s, takes[-1 - depth])
        batch = load(index)
        puts.append(turns.now_s)
        turns.now_s = max(turns.now_s, asked_s)
        takes.append(turns.now_s)
        yield batch


def loader_plan(sample_ms, batch_size, step_ms, prefetch_factor, sample_bytes):
    n_workers = math.ceil(batch_size * sample_ms / step_ms)
    return n_workers, n_workers * prefetch_factor * batch_size * sample_bytes
