# hint: The jobs run one after the other
def time_jobs(jobs, cuda):
    pairs = []
    for fn, stream in jobs:
        with cuda.stream(stream):
            if pairs:
                stream.wait_event(pairs[-1][1])
            start, end = (cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            fn()
            end.record()
        pairs.append((start, end))
    cuda.synchronize()
    return [start.elapsed_time(end) for start, end in pairs]
