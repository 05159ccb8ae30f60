# hint: Each copy begins only when the kernels before it are done
def stream_layers(cuda, layer, weights, xs):
    side = cuda.Stream()
    for weight in weights:
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            weight = weight.to(xs[0].device, non_blocking=True)
        cuda.current_stream().wait_stream(side)
        xs = [layer(weight, x) for x in xs]
    return xs


def tokens_to_hide(bytes_per_param, flops_per_s, link_bytes_per_s):
    return bytes_per_param * flops_per_s / (2 * link_bytes_per_s)
