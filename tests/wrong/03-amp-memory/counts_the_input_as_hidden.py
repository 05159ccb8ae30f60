# hint: counted with the hidden ones
def bytes_after_forward(widths, n_rows, *, training, autocast):
    P = sum(p * q for p, q in zip(widths, widths[1:]))
    e = 2 if autocast else 4
    H = sum(widths[:-1])
    total = 4 * P + 4 * n_rows * widths[0] + e * n_rows * widths[-1]
    if autocast:
        total += 2 * P
    if training:
        total += 12 * P + 2 * e * n_rows * H
        if autocast:
            total += 2 * n_rows * widths[0]
    return total
def break_even_rows(widths):
    n = 1
    while bytes_after_forward(widths, n, training=True, autocast=True) >= bytes_after_forward(widths, n, training=True, autocast=False):
        n += 1
        if n > 10**5:
            return n
    return n
