# Goes from group to group until the program is in one.
def tile_of(pid, n_tiles_m, n_tiles_n, group):
    first = 0
    while True:
        height = min(group, n_tiles_m - first)
        if pid < height * n_tiles_n:
            return (first + pid % height, pid // height)
        pid -= height * n_tiles_n
        first += height
