# hint: the others have `group`
def tile_of(pid: int, n_tiles_m: int, n_tiles_n: int, group: int) -> tuple[int, int]:
    """The tile (row, column) of program `pid`, where `group` rows of tiles are gone through column after column."""
    first = pid // (group * n_tiles_n) * group
    height = n_tiles_m % group or group
    rest = pid % (group * n_tiles_n)
    return first + rest % height, rest // height
