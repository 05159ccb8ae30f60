def time_jobs(jobs, cuda):
    marks = []
    for fn, stream in jobs:
        before = cuda.current_stream()
        cuda.set_stream(stream)
        start = stream.record_event(cuda.Event(enable_timing=True))
        fn()
        marks.append((start, stream.record_event(cuda.Event(enable_timing=True))))
        cuda.set_stream(before)
    for _, end in marks:
        end.synchronize()
    return [start.elapsed_time(end) for start, end in marks]
