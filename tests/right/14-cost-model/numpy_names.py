import numpy as np
def all_reduce_time(algorithm: str, n: int, n_bytes: int, alpha_s: float, beta_s: float) -> float:
    match algorithm:
        case "naive": r, k = 2 * n - 2, n_bytes
        case "tree": r, k = 2 * np.ceil(np.log2(n)), n_bytes
        case "butterfly":
            low = np.floor(np.log2(n))
            r, k = (low if 2**low == n else low + 2), n_bytes
        case "ring": r, k = 2 * n - 2, n_bytes // n
        case _: raise ValueError(algorithm)
    return r * alpha_s + r * k * beta_s
NAMES = np.array(["naive", "tree", "butterfly", "ring"])
def fastest(n, n_bytes, alpha_s, beta_s):
    return NAMES[np.argmin([all_reduce_time(a, n, n_bytes, alpha_s, beta_s) for a in NAMES])]
