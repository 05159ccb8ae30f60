# hint: twice as long
def one_f_one_b(stage, n_stages, n_microbatches):
    ahead = min(n_microbatches, 2 * (n_stages - stage) - 1)
    order = [("F", i) for i in range(ahead)]
    for i in range(n_microbatches):
        order.append(("B", i))
        if ahead + i < n_microbatches:
            order.append(("F", ahead + i))
    return order
