# hint: These times do not begin with their jobs
def time_jobs(jobs, cuda):
    start = cuda.Event(enable_timing=True)
    start.record()
    ends = []
    for fn, stream in jobs:
        end = cuda.Event(enable_timing=True)
        with cuda.stream(stream):
            fn()
            end.record()
        ends.append(end)
    cuda.synchronize()
    return [start.elapsed_time(end) for end in ends]
