# hint: A pass is in no list
def one_f_one_b(stage, n_stages, n_microbatches):
    warm_up = min(n_microbatches, n_stages - 1 - stage)
    order = [("F", i) for i in range(warm_up)]
    for i in range(n_microbatches - warm_up - 1):
        order += [("F", warm_up + i), ("B", i)]
    return order + [("B", i) for i in range(n_microbatches - warm_up, n_microbatches)]
