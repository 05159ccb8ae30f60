def tensors(widths, n_rows, training, autocast):
    low = 2 if autocast else 4
    yield n_rows * widths[0] * 4
    for k, (a, b) in enumerate(zip(widths[:-1], widths[1:]), 1):
        for _ in range(4 if training else 1):
            yield a * b * 4
        if autocast:
            yield a * b * 2
            if training and k == 1:
                yield n_rows * a * 2
        if k == len(widths) - 1:
            yield n_rows * b * low
        elif training:
            yield 2 * n_rows * b * low


def bytes_after_forward(widths, n_rows, *, training, autocast):
    return float(sum(tensors(widths, n_rows, training, autocast)))


def break_even_rows(widths):
    parameters = sum(a * b for a, b in zip(widths, widths[1:]))
    return math.floor(parameters / (2 * sum(widths[1:-1]) + widths[-1] - widths[0])) + 1
