# hint: A number of rows is a whole number
def bytes_after_forward(widths, n_rows, *, training, autocast):
    P = sum(a * b for a, b in zip(widths, widths[1:]))
    e = 2 if autocast else 4
    total = 4 * P + 4 * n_rows * widths[0] + e * n_rows * widths[-1]
    if autocast:
        total += 2 * P
    if training:
        total += 4 * P + 8 * P
        total += e * n_rows * 2 * sum(widths[1:-1])
        if autocast:
            total += 2 * n_rows * widths[0]
    return total


def break_even_rows(widths):
    P = sum(a * b for a, b in zip(widths, widths[1:]))
    saved = 2 * (2 * sum(widths[1:-1]) + widths[-1] - widths[0])
    return 2 * P / saved + 0.3
