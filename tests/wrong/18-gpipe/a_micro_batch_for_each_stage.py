# hint: as many micro-batches in these lists as there are stages
def gpipe(stage, n_stages, n_microbatches):
    return [(kind, i) for kind in "FB" for i in range(min(n_stages, n_microbatches))]
