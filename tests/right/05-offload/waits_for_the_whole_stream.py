# before a copy is used, one stream waits for all work of the other
def offload_hooks(cuda, parameters, n_in_flight):
    side, compute = cuda.Stream(), cuda.current_stream()
    known = {p.untyped_storage().data_ptr() for p in parameters}
    going, coming = deque(), deque()
    last = None
    def pack(x):
        if x.untyped_storage().data_ptr() in known:
            return x
        host = torch.empty(x.shape, dtype=x.dtype, pin_memory=True)
        side.wait_stream(compute)
        with cuda.stream(side):
            host.copy_(x, non_blocking=True)
        going.append((x, side.record_event()))
        if len(going) > n_in_flight:
            old, event = going.popleft()
            compute.wait_event(event)
            del old
        return host, x.device
    def unpack(packed):
        nonlocal last
        if isinstance(packed, Tensor):
            return packed
        going.clear()
        host, device = packed
        if last is not None:
            coming.append((last, compute.record_event()))
            last = None
        if len(coming) >= n_in_flight:
            old, event = coming.popleft()
            side.wait_event(event)
            del old
        with cuda.stream(side):
            x = host.to(device, non_blocking=True)
        compute.wait_stream(side)
        last = x
        return x
    return pack, unpack
