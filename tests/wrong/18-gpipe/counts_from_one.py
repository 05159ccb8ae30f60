# hint: numbered from 0
def gpipe(stage, n_stages, n_microbatches):
    every = range(1, n_microbatches + 1)
    return [("F", i) for i in every] + [("B", i) for i in every]
