# a line for each algorithm: how often it sends all, or a chunk
def all_reduce_time(algorithm, n, n_bytes, alpha_s, beta_s):
    up, down = math.ceil(math.log2(n)), math.floor(math.log2(n))
    whole = alpha_s + n_bytes * beta_s
    chunk = alpha_s + n_bytes / n * beta_s
    if algorithm == "naive":
        return 2 * (n - 1) * whole
    if algorithm == "tree":
        return 2 * up * whole
    if algorithm == "butterfly":
        return (up if up == down else down + 2) * whole
    return 2 * (n - 1) * chunk


def fastest(n, n_bytes, alpha_s, beta_s):
    names = ("naive", "tree", "butterfly", "ring")
    return min(names, key=lambda name: all_reduce_time(name, n, n_bytes, alpha_s, beta_s))
