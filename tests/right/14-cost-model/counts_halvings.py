def all_reduce_time(algorithm, n, n_bytes, alpha_s, beta_s):
    halvings = n.bit_length() - 1
    left_over = n > 2**halvings
    rounds = {
        "naive": 2 * (n - 1),
        "tree": 2 * (halvings + left_over),
        "butterfly": halvings + 2 * left_over,
        "ring": 2 * (n - 1),
    }
    message = n_bytes / n if algorithm == "ring" else n_bytes
    return rounds[algorithm] * (alpha_s + message * beta_s)

def fastest(n, n_bytes, alpha_s, beta_s):
    return min(("naive", "tree", "butterfly", "ring"), key=lambda name: all_reduce_time(name, n, n_bytes, alpha_s, beta_s))
