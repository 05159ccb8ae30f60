# No phases: whatever is held decides what comes next.
def one_f_one_b(stage, n_stages, n_microbatches):
    order, n_forward, n_backward = [], 0, 0
    while n_backward < n_microbatches:
        if n_forward < n_microbatches and n_forward - n_backward < n_stages - stage:
            order.append(("F", n_forward))
            n_forward += 1
        else:
            order.append(("B", n_backward))
            n_backward += 1
    return order
