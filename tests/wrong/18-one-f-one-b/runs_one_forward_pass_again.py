# hint: listed twice
def one_f_one_b(stage, n_stages, n_microbatches):
    warm_up = min(n_microbatches, n_stages - stage)
    order = [("F", i) for i in range(warm_up)]
    for i in range(n_microbatches):
        order += [("F", min(warm_up + i, n_microbatches - 1)), ("B", i)]
    return order
