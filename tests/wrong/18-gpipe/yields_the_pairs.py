# hint: Return a list of pairs
def gpipe(stage, n_stages, n_microbatches):
    for kind in ("F", "B"):
        for i in range(n_microbatches):
            yield kind, i
