# hint: More than fn was timed
def bench(fn, cuda, device, now_s, n_repeats):
    size = cuda.get_device_properties(device).L2_cache_size
    buffer = torch.empty(2 * size, dtype=torch.int8, device=device)
    fn()
    buffer.zero_()
    pairs = []
    for _ in range(n_repeats):
        start, end = (cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        buffer.zero_()
        fn()
        end.record()
        pairs.append((start, end))
    cuda.synchronize()
    return statistics.median(start.elapsed_time(end) for start, end in pairs)
