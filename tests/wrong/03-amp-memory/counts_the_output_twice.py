# hint: no GELU follows the last layer
def bytes_after_forward(widths, n_rows, *, training, autocast):
    d0, *rest = widths
    p = sum(a * b for a, b in itertools.pairwise(widths))
    h = sum(rest)
    if training:
        return 18 * p + n_rows * (6 * d0 + 4 * h) if autocast else 16 * p + 4 * n_rows * (d0 + 2 * h)
    return 6 * p + n_rows * (4 * d0 + 2 * widths[-1]) if autocast else 4 * p + 4 * n_rows * (d0 + widths[-1])
def break_even_rows(widths):
    p = sum(a * b for a, b in itertools.pairwise(widths))
    return p // (2 * sum(widths[1:]) - widths[0]) + 1
