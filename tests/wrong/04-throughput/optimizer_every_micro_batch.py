# hint: runs once a step
def compute_bound_rows(n, peak_flops, bandwidth, itemsize):
    theta = itemsize / 2 * peak_flops / bandwidth
    return theta * n / (n - 2 * theta) if n > 2 * theta else math.inf


def tokens_per_second(
    n_texts, length, n, n_accumulate, peak_flops, bandwidth, itemsize, optimizer_bytes
):
    b = n_texts * length
    n_bytes = itemsize * (n * n + 2 * b * n)
    product = max(2 * b * n * n / peak_flops, n_bytes / bandwidth)
    seconds = 3 * n_accumulate * product + n_accumulate * optimizer_bytes * n * n / bandwidth
    return n_accumulate * b / seconds
