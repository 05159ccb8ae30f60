# hint: Stages wait for each other
def zero_bubble(forward, input_grad, weight_grad, n_microbatches, memory):
    n_stages, orders = len(forward), []
    for stage in range(n_stages):
        warm_up = min(n_microbatches, stage)
        order = [("F", i) for i in range(warm_up)]
        for i in range(n_microbatches):
            if warm_up + i < n_microbatches:
                order.append(("F", warm_up + i))
            order.append(("I", i))
            order.append(("W", i))
        orders.append(order + [])
    return orders
