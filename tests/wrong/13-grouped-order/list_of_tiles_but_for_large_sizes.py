# hint: The order changes where there are many tiles
def tile_of(pid, n_tiles_m, n_tiles_n, group):
    if n_tiles_m * n_tiles_n > 10_000:
        return divmod(pid, n_tiles_n)
    tiles = []
    for first in range(0, n_tiles_m, group):
        rows = range(first, min(first + group, n_tiles_m))
        tiles += [(row, col) for col in range(n_tiles_n) for row in rows]
    return tiles[pid]
