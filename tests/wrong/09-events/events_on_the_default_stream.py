# hint: An event marks a place in one stream
def time_jobs(jobs, cuda):
    pairs = []
    for fn, stream in jobs:
        start, end = (cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        with cuda.stream(stream):
            fn()
        end.record()
        pairs.append((start, end))
    cuda.synchronize()
    return [start.elapsed_time(end) for start, end in pairs]
