# hint: Right but for rounding
def stream_layers(cuda, layer, weights, xs):
    device = xs[0].device
    side, compute = cuda.Stream(), cuda.current_stream()
    used = []
    def fetch(i):
        if i >= 2: side.wait_event(used[i - 2])
        with cuda.stream(side):
            w = weights[i].to(device, non_blocking=True)
        return w, side.record_event()
    nxt = fetch(0)
    for i in range(len(weights)):
        w, ready = nxt
        nxt = None
        if i + 1 < len(weights): nxt = fetch(i + 1)
        compute.wait_event(ready)
        xs = [layer(w, x) for x in xs]
        used.append(compute.record_event())
        del w
    return xs
def tokens_to_hide(b, f, l): return math.ceil(b * f / (2 * l))
