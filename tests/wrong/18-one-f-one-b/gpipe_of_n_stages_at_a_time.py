# hint: runs empty in the middle
def one_f_one_b(stage, n_stages, n_microbatches):
    order = []
    for start in range(0, n_microbatches, n_stages):
        part = range(start, min(start + n_stages, n_microbatches))
        order += [("F", i) for i in part] + [("B", i) for i in part]
    return order
