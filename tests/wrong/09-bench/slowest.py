# hint: That is the time of some call, or of the fastest
def bench(fn, cuda, device, now_s, n_repeats):
    buffer = torch.empty(2 * cuda.get_device_properties(device).L2_cache_size, dtype=torch.int8, device=device)
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
    times = [start.elapsed_time(end) for start, end in pairs]
    return max(times)
