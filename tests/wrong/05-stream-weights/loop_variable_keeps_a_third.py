# hint: More than two layers are on the device
def arriving(cuda, weights, device, side):
    """Each layer's weights on the device, the next ones on their way."""
    compute = cuda.current_stream()

    def fetch(weight):
        with cuda.stream(side):
            return weight.to(device, non_blocking=True), side.record_event()

    ahead, behind = fetch(weights[0]), None
    for following in [*weights[1:], None]:
        here, event = ahead
        ahead = None
        if behind is not None:
            side.wait_event(behind)
        if following is not None:
            ahead = fetch(following)
        compute.wait_event(event)
        yield here
        behind = compute.record_event()


def stream_layers(cuda, layer, weights, xs):
    side = cuda.Stream(priority=-1)
    for weight in arriving(cuda, weights, xs[0].device, side):
        results = []
        for x in xs:
            results.append(layer(weight, x))
        xs = tuple(results)
    return xs


def tokens_to_hide(bytes_per_param, flops_per_s, link_bytes_per_s):
    seconds_to_copy = bytes_per_param / link_bytes_per_s
    seconds_per_token = 2 / flops_per_s
    return seconds_to_copy / seconds_per_token
