# hint: No event was recorded
import time
def time_jobs(jobs,cuda):
    out=[]
    for fn,stream in jobs:
        with cuda.stream(stream):
            a=time.perf_counter(); fn(); out.append(1e3*(time.perf_counter()-a))
    cuda.synchronize()
    return out
