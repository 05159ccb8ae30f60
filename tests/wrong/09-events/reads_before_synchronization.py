# hint: Events are marks that the device has yet to pass
def time_jobs(jobs, cuda):
    pairs = []
    for fn, stream in jobs:
        start, end = (cuda.Event(enable_timing=True) for _ in range(2))
        with cuda.stream(stream):
            start.record()
            fn()
            end.record()
        pairs.append((start, end))
    return [start.elapsed_time(end) for start, end in pairs]
