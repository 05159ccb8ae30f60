# hint: More than two layers are on the device
def stream_layers(cuda, layer, weights, xs):
    compute, side = cuda.current_stream(), cuda.Stream()
    with cuda.stream(side):
        on_device = [(w.to(xs[0].device, non_blocking=True), side.record_event()) for w in weights]
    for weight, copied in on_device:
        compute.wait_event(copied)
        xs = [layer(weight, x) for x in xs]
    return xs


def tokens_to_hide(bytes_per_param, flops_per_s, link_bytes_per_s):
    return bytes_per_param * flops_per_s / (2 * link_bytes_per_s)
