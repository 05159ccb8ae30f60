def time_jobs(jobs, cuda):
    last, pairs = {}, []
    for fn, stream in jobs:
        if stream not in last or last[stream].query():
            last[stream] = cuda.Event(enable_timing=True)
            last[stream].record(stream)
        end = cuda.Event(enable_timing=True)
        with cuda.stream(stream):
            fn()
        end.record(stream)
        pairs.append((last[stream], end))
        last[stream] = end
    for stream in {stream for _, stream in jobs}:
        stream.synchronize()
    return [start.elapsed_time(end) for start, end in pairs]
