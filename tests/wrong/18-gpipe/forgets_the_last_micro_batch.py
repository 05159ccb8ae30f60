# hint: The last micro-batch is missing
def gpipe(stage, n_stages, n_microbatches):
    every = range(n_microbatches - 1)
    return [("F", i) for i in every] + [("B", i) for i in every]
