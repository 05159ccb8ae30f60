# hint: Only the last group is wrong
def tile_of(pid: int, n_tiles_m: int, n_tiles_n: int, group: int) -> tuple[int, int]:
    """The tile (row, column) of program `pid`, where `group` rows of tiles are gone through column after column."""
    first = pid // (group * n_tiles_n) * group
    height = group
    rest = pid % (group * n_tiles_n)
    return first + rest % height, rest // height
