# hint: Only the first hidden width
def bytes_after_forward(widths, n_rows, *, training, autocast):
    params = sum(a * b for a, b in zip(widths, widths[1:]))
    per = 2 if autocast else 4
    total = (6 if autocast else 4) * params + 4 * n_rows * widths[0] + per * n_rows * widths[-1]
    if training:
        total += 12 * params + 2 * per * n_rows * widths[1]
        if autocast:
            total += 2 * n_rows * widths[0]
    return total


def break_even_rows(widths):
    n = 1
    while bytes_after_forward(widths, n, training=True, autocast=True) >= bytes_after_forward(
        widths, n, training=True, autocast=False
    ):
        n += 1
    return n
