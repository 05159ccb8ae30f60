# Entries are lists, and the micro-batches run from the last to the first.
def gpipe(stage, n_stages, n_microbatches):
    return [[kind, i] for kind in "FB" for i in reversed(range(n_microbatches))]
