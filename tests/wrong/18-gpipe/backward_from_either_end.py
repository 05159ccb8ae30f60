# hint: backward in different orders
def gpipe(stage, n_stages, n_microbatches):
    every = list(range(n_microbatches))
    backward = every if stage == n_stages - 1 else every[::-1]
    return [("F", i) for i in every] + [("B", i) for i in backward]
