# Sorts all passes by the number of forward passes that come before them.
def one_f_one_b(stage, n_stages, n_microbatches):
    ahead = n_stages - 1 - stage
    forward = [(i, 0, ("F", i)) for i in range(n_microbatches)]
    backward = [(i + ahead, 1, ("B", i)) for i in range(n_microbatches)]
    return [entry for _, _, entry in sorted(forward + backward)]
