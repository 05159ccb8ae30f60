# an event for each copy and each use
def stream_layers(cuda, layer, weights, xs):
    compute, side = cuda.current_stream(), cuda.Stream()
    device, used = xs[0].device, []

    def fetch(i):
        if i >= 2:
            side.wait_event(used[i - 2])
        with cuda.stream(side):
            return weights[i].to(device, non_blocking=True), side.record_event()

    coming = fetch(0)
    for i in range(len(weights)):
        weight, copied = coming
        if i + 1 < len(weights):
            coming = fetch(i + 1)
        compute.wait_event(copied)
        xs = [layer(weight, x) for x in xs]
        used.append(compute.record_event())
    return xs


def tokens_to_hide(bytes_per_param, flops_per_s, link_bytes_per_s):
    return bytes_per_param * flops_per_s / (2 * link_bytes_per_s)
