def bytes_after_forward(widths: Sequence[int], n_rows: int, *, training: bool, autocast: bool) -> int:
    total = 4 * n_rows * widths[0]
    small = 2 if autocast else 4
    for i in range(len(widths) - 1):
        n = widths[i] * widths[i + 1]
        total += n * (4 + 2 * autocast)
        if training:
            total += n * 12 + 4
    total += small * n_rows * widths[-1]
    if training:
        total += 2 * small * n_rows * sum(widths[1:-1])
        if autocast:
            total += 2 * n_rows * widths[0]
    return total


def break_even_rows(widths: Sequence[int]) -> int:
    n = 1
    while bytes_after_forward(widths, n, training=True, autocast=True) >= bytes_after_forward(widths, n, training=True, autocast=False):
        n *= 2
    low, high = 0, n
    while high - low > 1:
        mid = (low + high) // 2
        if bytes_after_forward(widths, mid, training=True, autocast=True) < bytes_after_forward(widths, mid, training=True, autocast=False):
            high = mid
        else:
            low = mid
    return high
