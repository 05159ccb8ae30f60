# hint: Row and column are swapped
def tile_of(pid: int, n_tiles_m: int, n_tiles_n: int, group: int) -> tuple[int, int]:
    """The tile (row, column) of program `pid`, where `group` rows of tiles are gone through column after column."""
    first = pid // (group * n_tiles_n) * group
    height = min(group, n_tiles_m - first)
    rest = pid % (group * n_tiles_n)
    return rest // height, first + rest % height
