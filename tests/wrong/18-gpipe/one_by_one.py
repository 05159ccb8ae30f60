# hint: Every stage waits for a micro-batch's gradient
def gpipe(stage, n_stages, n_microbatches):
    order = []
    for i in range(n_microbatches):
        order += [("F", i), ("B", i)]
    return order
