# hint: The data was still in the cache
def bench(fn, cuda, device, now_s, n_repeats):
    start, end = (cuda.Event(enable_timing=True) for _ in range(2))
    fn()
    start.record()
    for _ in range(n_repeats):
        fn()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / n_repeats
