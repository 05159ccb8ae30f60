# hint: The host writes into pinned memory that an earlier copy still reads
def double_buffered(cuda, compute, batches, buffers):
    side, here, used, out = cuda.Stream(), cuda.current_stream(), [], []
    staging = torch.empty_like(batches[0]).pin_memory()
    for i, batch in enumerate(batches):
        staging.copy_(batch)
        if i >= 2:
            side.wait_event(used[i - 2])
        with cuda.stream(side):
            buffers[i % 2].copy_(staging, non_blocking=True)
        here.wait_event(side.record_event())
        out.append(compute(buffers[i % 2]))
        used.append(here.record_event())
    return out


def overlap_speedup(n_batches, copy_s, kernels_s):
    one = n_batches * (copy_s + kernels_s)
    return one / (copy_s + (n_batches - 1) * max(copy_s, kernels_s) + kernels_s)
