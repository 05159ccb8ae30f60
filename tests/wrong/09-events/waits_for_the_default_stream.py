# hint: Waiting for one stream says nothing about the others
def time_jobs(jobs, cuda):
    pairs = []
    for fn, stream in jobs:
        start, end = (cuda.Event(enable_timing=True) for _ in range(2))
        with cuda.stream(stream):
            start.record()
            fn()
            end.record()
        pairs.append((start, end))
    cuda.current_stream().synchronize()
    return [start.elapsed_time(end) for start, end in pairs]
