# hint: An event marks a place in one stream
def time_jobs(jobs, cuda):
    pairs=[]
    for fn, stream in jobs:
        s=cuda.Event(enable_timing=True); e=cuda.Event(enable_timing=True)
        with cuda.stream(stream):
            s.record(); fn()
        e.record()
        pairs.append((s,e))
    cuda.synchronize()
    return [s.elapsed_time(e) for s,e in pairs]
