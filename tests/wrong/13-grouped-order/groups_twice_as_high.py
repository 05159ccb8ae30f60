# hint: These are groups of another height
def tile_of(pid, n_tiles_m, n_tiles_n, group):
    group = 2 * group
    first = pid // (group * n_tiles_n) * group
    height = min(group, n_tiles_m - first)
    rest = pid % (group * n_tiles_n)
    return first + rest % height, rest // height
