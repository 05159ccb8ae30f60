# hint: Without autograd nothing keeps
def bytes_after_forward(widths, n_rows, *, training, autocast):
    d0, *hidden, dl = widths
    p = sum(a * b for a, b in itertools.pairwise(widths))
    h = sum(hidden)
    if training:
        return 18 * p + n_rows * (6 * d0 + 4 * h + 2 * dl) if autocast else 16 * p + 4 * n_rows * (d0 + 2 * h + dl)
    return 6 * p + n_rows * (6 * d0 + 2 * dl) if autocast else 4 * p + 4 * n_rows * (d0 + dl)
def break_even_rows(widths):
    p = sum(a * b for a, b in itertools.pairwise(widths))
    return p // (2 * sum(widths[1:-1]) + widths[-1] - widths[0]) + 1
