# hint: without a list of tiles
STATE = {}
def tile_of(pid, n_tiles_m, n_tiles_n, group):
    key = (n_tiles_m, n_tiles_n, group)
    if key not in STATE:
        STATE[key] = [(r, c) for f in range(0, n_tiles_m, group) for c in range(n_tiles_n) for r in range(f, min(f + group, n_tiles_m))]
    return STATE[key][pid]
