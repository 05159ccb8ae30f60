# hint: Write over a buffer of twice L2_cache_size bytes
def bench(fn, cuda, device, now_s, n_repeats):
    buffer = torch.empty(2**20, dtype=torch.int8, device=device)
    fn()
    pairs = []
    for _ in range(n_repeats):
        buffer.zero_()
        start, end = (cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        fn()
        end.record()
        pairs.append((start, end))
    cuda.synchronize()
    return statistics.median(start.elapsed_time(end) for start, end in pairs)
