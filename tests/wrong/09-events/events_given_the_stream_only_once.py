# hint: A job runs on the stream that is current
def time_jobs(jobs, cuda):
    pairs = []
    for fn, stream in jobs:
        start, end = (cuda.Event(enable_timing=True) for _ in range(2))
        start.record(stream)
        fn()
        end.record(stream)
        pairs.append((start, end))
    cuda.synchronize()
    return [start.elapsed_time(end) for start, end in pairs]
