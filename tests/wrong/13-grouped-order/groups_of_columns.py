# hint: These are groups of `group` columns
def tile_of(pid, n_tiles_m, n_tiles_n, group):
    per = group * n_tiles_m
    first = pid // per * group
    w = min(group, n_tiles_n - first)
    r = pid % per
    return r // w, first + r % w
