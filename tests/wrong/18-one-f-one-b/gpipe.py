# hint: that is GPipe
def one_f_one_b(stage, n_stages, n_microbatches):
    every = range(n_microbatches)
    return [("F", i) for i in every] + [("B", i) for i in every]
