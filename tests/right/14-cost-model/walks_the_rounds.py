import numpy as np


def all_reduce_time(algorithm, n, n_bytes, alpha_s, beta_s):
    """Adds up round by round; what each sends is listed."""
    if algorithm in ("naive", "ring"):
        sizes = [n_bytes if algorithm == "naive" else n_bytes // n for _ in range(1, n) for _ in "ab"]
    else:
        sizes, width = [], 1
        while width < n:
            if algorithm == "tree":
                sizes += [n_bytes, n_bytes]
            elif 2 * width <= n:
                sizes += [n_bytes]
            else:
                sizes += [n_bytes] * 2
            width *= 2
    return float(np.sum([alpha_s + size * beta_s for size in sizes]))


def fastest(n, n_bytes, alpha_s, beta_s):
    # Nothing else can win: a tree takes no fewer rounds than a butterfly, and the naive way no fewer than a ring.
    butterfly, ring = (all_reduce_time(name, n, n_bytes, alpha_s, beta_s) for name in ("butterfly", "ring"))
    return "ring" if ring < butterfly else "butterfly"
