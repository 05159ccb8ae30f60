# hint: not once for the whole all-reduce
def all_reduce_time(algorithm, n, n_bytes, alpha_s, beta_s):
    m = n.bit_length() - 1
    pow2 = n == 2**m
    up = m if pow2 else m + 1
    rounds = {"naive": 2*(n-1), "ring": 2*(n-1), "tree": 2*up, "butterfly": m if pow2 else m + 2}[algorithm]
    size = n_bytes / n if algorithm == "ring" else n_bytes
    return alpha_s + rounds * beta_s * size

def fastest(n, n_bytes, alpha_s, beta_s):
    return min(["naive", "tree", "butterfly", "ring"], key=lambda a: all_reduce_time(a, n, n_bytes, alpha_s, beta_s))
