# hint: The batches go into new memory
def double_buffered(cuda, compute, batches, buffers):
    side=cuda.Stream(); here=cuda.current_stream()
    used=[]; out=[]
    side.wait_event(here.record_event())
    for i,b in enumerate(batches):
        buf=torch.empty_like(buffers[0])
        if i>=2: side.wait_event(used[i-2])
        with cuda.stream(side):
            buf.copy_(b.pin_memory(), non_blocking=True)
        here.wait_event(side.record_event())
        out.append(compute(buf))
        used.append(here.record_event())
    return out
def overlap_speedup(n_batches, copy_s, kernels_s):
    return n_batches*(copy_s+kernels_s)/(copy_s+(n_batches-1)*max(copy_s,kernels_s)+kernels_s)
