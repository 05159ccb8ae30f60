# hint: elapsed_time tells milliseconds already
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
    return [start.elapsed_time(end) / 1e3 for start, end in pairs]
