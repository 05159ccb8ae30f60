# hint: the number of rounds is wrong
def all_reduce_time(algorithm, n, n_bytes, alpha_s, beta_s):
    up, down = math.ceil(math.log2(n)), math.floor(math.log2(n))
    rounds = dict(naive=2 * (n - 1), ring=2 * (n - 1), tree=2 * up, butterfly=up if up == down else up + 2)[algorithm]
    return rounds * (alpha_s + n_bytes / (n if algorithm == "ring" else 1) * beta_s)
def fastest(n, n_bytes, alpha_s, beta_s):
    return min(["naive", "tree", "butterfly", "ring"], key=lambda a: all_reduce_time(a, n, n_bytes, alpha_s, beta_s))
