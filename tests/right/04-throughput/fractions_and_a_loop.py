from fractions import Fraction


def compute_bound_rows(n, peak_flops, bandwidth, itemsize):
    # seconds for arithmetic and for bytes are lines in b: slope and start of each
    arithmetic = Fraction(2 * n * n) / Fraction(peak_flops)
    traffic = Fraction(2 * n * itemsize) / Fraction(bandwidth)
    if arithmetic <= traffic:
        return float("inf")
    return Fraction(n * n * itemsize) / Fraction(bandwidth) / (arithmetic - traffic)


def tokens_per_second(n_texts, length, n, n_accumulate, peak_flops, bandwidth, itemsize, optimizer_bytes):
    seconds, tokens = torch.tensor(optimizer_bytes * n**2 / bandwidth, dtype=torch.float64), 0
    for _ in range(n_accumulate):
        rows = n_texts * length
        for shapes in [((rows, n), (n, n), (rows, n))] * 3:
            moved = sum(a * b for a, b in shapes) * itemsize
            seconds += max(2 * rows * n**2 / peak_flops, moved / bandwidth)
        tokens += rows
    return tokens / seconds
