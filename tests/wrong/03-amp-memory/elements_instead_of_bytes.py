# hint: a float32 number has 4 bytes
def bytes_after_forward(widths, n_rows, *, training, autocast):
    n_parameters = sum(a * b for a, b in itertools.pairwise(widths))
    return n_parameters * (4 if training else 1) + n_rows * (widths[0] + 2 * training * sum(widths[1:-1]) + widths[-1])


def break_even_rows(widths):
    return sum(a * b for a, b in itertools.pairwise(widths)) // (2 * sum(widths[1:-1]) + widths[-1] - widths[0]) + 1
