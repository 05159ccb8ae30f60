def offload_hooks(cuda, parameters, n_in_flight):
    """Copies back into a ring of buffers that stay on the device."""
    import itertools

    own = {p.untyped_storage()._cdata for p in parameters}
    side, n_slots = cuda.Stream(), n_in_flight + 1
    ring, events, waiting = {}, {}, []
    turn = itertools.count()

    def pack(x):
        if x.untyped_storage()._cdata in own:
            return x
        host = torch.empty_like(x, device="cpu", pin_memory=True)
        with cuda.stream(side):
            side.wait_stream(cuda.default_stream())
            host.copy_(x, non_blocking=True)
            done = cuda.Event()
            done.record(side)
        waiting.append((x, done))
        if len(waiting) > n_in_flight:
            cuda.default_stream().wait_event(waiting.pop(0)[1])
        return [host, x.device]

    def unpack(packed):
        if not isinstance(packed, list):
            return packed
        host, device = packed
        compute = cuda.default_stream()
        if waiting:
            compute.wait_stream(side)
            waiting.clear()
        at = next(turn)
        events[at] = compute.record_event()
        slot = at % n_slots
        with cuda.stream(side):
            if at >= n_slots:
                side.wait_event(events[at - n_slots + 1])
                ring[slot].copy_(host, non_blocking=True)
            else:
                ring[slot] = host.to(device, non_blocking=True)
        compute.wait_stream(side)
        return ring[slot]

    return pack, unpack
