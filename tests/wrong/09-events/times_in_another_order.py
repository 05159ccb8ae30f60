# hint: the right times in the wrong order
def time_jobs(jobs, cuda):
    pairs = []
    for fn, stream in jobs:
        with cuda.stream(stream):
            start, end = (cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            fn()
            end.record()
        pairs.append((start, end))
    cuda.synchronize()
    return sorted(start.elapsed_time(end) for start, end in pairs)
