# hint: not in the order of the list
def time_jobs(jobs, cuda):
    pairs = []
    for fn, stream in sorted(jobs, key=lambda job: id(job[1])):
        with cuda.stream(stream):
            start, end = (cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            fn()
            end.record()
        pairs.append((start, end))
    cuda.synchronize()
    return [start.elapsed_time(end) for start, end in pairs]
