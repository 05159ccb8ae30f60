# hint: the other way round it is negative
def time_jobs(jobs, cuda):
    pairs = []
    for fn, stream in jobs:
        start, end = (cuda.Event(enable_timing=True) for _ in range(2))
        with cuda.stream(stream):
            start.record()
            fn()
            end.record()
        pairs.append((start, end))
    cuda.synchronize()
    return [end.elapsed_time(start) for start, end in pairs]
