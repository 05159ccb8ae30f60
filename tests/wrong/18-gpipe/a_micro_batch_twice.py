# hint: listed twice
def gpipe(stage, n_stages, n_microbatches):
    every = range(n_microbatches)
    return [("F", i) for i in every] + [("F", 0)] + [("B", i) for i in every]
