# hint: in one stream
def stream_layers(cuda, layer, weights, xs):
    for weight in weights:
        weight = weight.to(xs[0].device, non_blocking=True)
        xs = [layer(weight, x) for x in xs]
    return xs


def tokens_to_hide(bytes_per_param, flops_per_s, link_bytes_per_s):
    return bytes_per_param * flops_per_s / (2 * link_bytes_per_s)
