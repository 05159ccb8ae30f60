# hint: forward in different orders
def gpipe(stage, n_stages, n_microbatches):
    every = list(range(n_microbatches))
    forward = every[::-1] if stage % 2 else every
    return [("F", i) for i in forward] + [("B", i) for i in every]
