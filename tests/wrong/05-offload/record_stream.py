# hint: record_stream keeps memory until the host sees
def offload_hooks(cuda, parameters, n_in_flight):
    stay = {parameter.untyped_storage().data_ptr() for parameter in parameters}
    side = cuda.Stream()
    leaving, used = deque(), deque()
    last = None

    def pack(x):
        if x.untyped_storage().data_ptr() in stay:
            return x
        host = torch.empty(x.shape, dtype=x.dtype, pin_memory=True)
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            host.copy_(x, non_blocking=True)
        x.record_stream(side)
        return x.device, host

    def unpack(packed):
        nonlocal last
        if isinstance(packed, Tensor):
            return packed
        leaving.clear()
        device, host = packed
        compute = cuda.current_stream()
        with cuda.stream(side):
            last = host.to(device, non_blocking=True)
        compute.wait_stream(side)
        last.record_stream(compute)
        return last

    return pack, unpack
