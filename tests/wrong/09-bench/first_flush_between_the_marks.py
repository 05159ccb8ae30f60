# hint: More than fn was timed: what overwrites the cache
def bench(fn, cuda, device, now_s, n_repeats):
    fn()
    size = cuda.get_device_properties(device).L2_cache_size
    buf = torch.empty(2 * size, dtype=torch.int8, device=device)
    pairs = []
    for _ in range(n_repeats):
        s, e = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        s.record()
        buf.zero_()
        fn()
        e.record()
        pairs.append((s, e))
    cuda.synchronize()
    return statistics.median(s.elapsed_time(e) for s, e in pairs)
