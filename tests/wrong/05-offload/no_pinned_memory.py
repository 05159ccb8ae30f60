# hint: only a non_blocking copy from or to pinned
def offload_hooks(cuda, parameters, n_in_flight):
    stay = {parameter.untyped_storage().data_ptr() for parameter in parameters}
    side = cuda.Stream()
    leaving, used = deque(), deque()
    last = None

    def pack(x):
        if x.untyped_storage().data_ptr() in stay:
            return x
        host = torch.empty(x.shape, dtype=x.dtype)
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            host.copy_(x, non_blocking=True)
        leaving.append((x, side.record_event()))
        if len(leaving) > n_in_flight:
            _, copied = leaving.popleft()
            cuda.current_stream().wait_event(copied)
        return x.device, host

    def unpack(packed):
        nonlocal last
        if isinstance(packed, Tensor):
            return packed
        leaving.clear()
        device, host = packed
        compute = cuda.current_stream()
        if last is not None:
            used.append((last, compute.record_event()))
        if len(used) == n_in_flight:
            _, read = used.popleft()
            side.wait_event(read)
        with cuda.stream(side):
            last = host.to(device, non_blocking=True)
        compute.wait_stream(side)
        return last

    return pack, unpack
