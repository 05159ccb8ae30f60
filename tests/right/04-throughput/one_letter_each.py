# In one function, without a helper, with a letter for each size.
def compute_bound_rows(n, peak_flops, bandwidth, itemsize):
    theta = itemsize / 2 * peak_flops / bandwidth
    return theta * n / (n - 2 * theta) if n > 2 * theta else math.inf


def tokens_per_second(n_texts, length, n, n_accumulate, peak_flops, bandwidth, itemsize, optimizer_bytes):
    b = n_texts * length
    flops = 2 * b * n**2
    moved = itemsize * (n**2 + 2 * b * n)
    product = max(flops / peak_flops, moved / bandwidth)
    return n_accumulate * b / (3 * n_accumulate * product + optimizer_bytes * n**2 / bandwidth)
