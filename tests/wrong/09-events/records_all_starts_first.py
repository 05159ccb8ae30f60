# hint: These times do not begin with their jobs
def time_jobs(jobs, cuda):
    pairs = [[cuda.Event(enable_timing=True) for _ in range(2)] for _ in jobs]
    for (start, _), (_, stream) in zip(pairs, jobs):
        start.record(stream)
    for (_, end), (fn, stream) in zip(pairs, jobs):
        with cuda.stream(stream):
            fn()
            end.record()
    cuda.synchronize()
    return [start.elapsed_time(end) for start, end in pairs]
