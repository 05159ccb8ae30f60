# hint: the orders of all stages
def zero_bubble(forward, input_grad, weight_grad, n_microbatches, memory):
    return [(kind, i) for i in range(n_microbatches) for kind in "FIW"]
