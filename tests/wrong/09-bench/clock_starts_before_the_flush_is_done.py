# hint: More than fn was timed
def bench(fn, cuda, device, now_s, n_repeats):
    buffer = torch.empty(2 * cuda.get_device_properties(device).L2_cache_size, dtype=torch.int8, device=device)
    fn()
    times = []
    for _ in range(n_repeats):
        buffer.zero_()
        before_s = now_s()
        fn()
        cuda.synchronize()
        times.append(1e3 * (now_s() - before_s))
    return statistics.median(times)
