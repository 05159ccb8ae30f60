# hint: Return a list of pairs
def gpipe(stage, n_stages, n_microbatches):
    every = range(n_microbatches)
    return [f"F{i}" for i in every] + [f"B{i}" for i in every]
