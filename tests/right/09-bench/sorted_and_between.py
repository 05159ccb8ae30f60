def bench(fn, cuda, device, now_s, n_repeats):
    flush = torch.zeros(4 * cuda.get_device_properties(device).L2_cache_size, device=device, dtype=torch.uint8)
    marks = [[cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)] for _ in range(n_repeats)]
    for _ in range(5):
        fn()
    cuda.synchronize()
    for start, end in marks:
        flush.fill_(1)
        cuda.current_stream().record_event(start)
        fn()
        cuda.current_stream().record_event(end)
        end.synchronize()
    times = sorted(start.elapsed_time(end) for start, end in marks)
    return (times[n_repeats // 2] + times[(n_repeats - 1) // 2]) / 2
