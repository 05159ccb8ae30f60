# hint: copied over weights that kernels still read
def stream_layers(cuda, layer, weights, xs):
    compute, side = cuda.current_stream(), cuda.Stream()
    with cuda.stream(side):
        buffers = [torch.empty_like(weights[0], device=xs[0].device) for _ in range(2)]
    for i, weight in enumerate(weights):
        with cuda.stream(side):
            buffers[i % 2].copy_(weight, non_blocking=True)
        compute.wait_stream(side)
        xs = [layer(buffers[i % 2], x) for x in xs]
    return xs


def tokens_to_hide(bytes_per_param, flops_per_s, link_bytes_per_s):
    return bytes_per_param * flops_per_s / (2 * link_bytes_per_s)
