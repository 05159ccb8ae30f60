# hint: holds too many micro-batches at once
def zero_bubble(forward, input_grad, weight_grad, n_microbatches, memory):
    n_stages, orders = len(forward), []
    for stage in range(n_stages):
        warm_up = min(n_microbatches, n_stages - 1 - stage)
        order = [("F", i) for i in range(warm_up)]
        for i in range(n_microbatches):
            if warm_up + i < n_microbatches:
                order.append(("F", warm_up + i))
            order.append(("I", i))
            if i > stage:
                order.append(("W", i - stage - 1))
        orders.append(order + [("W", i) for i in range(max(0, n_microbatches - stage - 1), n_microbatches)])
    return orders
