# hint: Without autograd nothing is kept
def bytes_after_forward(widths, n_rows, *, training, autocast):
    P = sum(a * b for a, b in zip(widths, widths[1:]))
    e = 2 if autocast else 4
    total = 4 * P + 4 * n_rows * widths[0] + e * n_rows * widths[-1]
    if autocast:
        total += 2 * P
    total += e * n_rows * 2 * sum(widths[1:-1])
    if training:
        total += 4 * P + 8 * P
        if autocast:
            total += 2 * n_rows * widths[0]
    return total


def break_even_rows(widths):
    n = 1
    while True:
        amp = bytes_after_forward(widths, n, training=True, autocast=True)
        if amp < bytes_after_forward(widths, n, training=True, autocast=False) or n > 10_000:
            return n
        n += 1
