# hint: numbered from 0
def one_f_one_b(stage, n_stages, n_microbatches):
    ahead = min(n_microbatches, n_stages - stage)
    order = [("F", i + 1) for i in range(ahead)]
    for i in range(n_microbatches):
        order.append(("B", i + 1))
        if ahead + i < n_microbatches:
            order.append(("F", ahead + i + 1))
    return order
