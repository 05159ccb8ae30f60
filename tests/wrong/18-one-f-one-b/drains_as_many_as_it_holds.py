# hint: goes back through everything that it holds
def one_f_one_b(stage, n_stages, n_microbatches):
    order, at_once = [], n_stages - stage
    for first in range(0, n_microbatches, at_once):
        group = range(first, min(first + at_once, n_microbatches))
        order += [("F", i) for i in group] + [("B", i) for i in group]
    return order
