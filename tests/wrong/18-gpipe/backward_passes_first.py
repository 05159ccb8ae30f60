# hint: A stage can only go back
def gpipe(stage, n_stages, n_microbatches):
    every = range(n_microbatches)
    return [("B", i) for i in every] + [("F", i) for i in every]
