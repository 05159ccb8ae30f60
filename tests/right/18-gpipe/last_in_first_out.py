# The backward passes begin with the newest micro-batch: GPipe leaves that open.
def gpipe(stage, n_stages, n_microbatches):
    order = [("F", i) for i in range(n_microbatches)]
    return order + [("B", i) for _, i in reversed(order)]
