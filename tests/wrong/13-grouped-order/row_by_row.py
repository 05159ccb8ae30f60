# hint: This is row by row
def tile_of(pid: int, n_tiles_m: int, n_tiles_n: int, group: int) -> tuple[int, int]:
    """The tile (row, column) of program `pid`, where `group` rows of tiles are gone through column after column."""
    return pid // n_tiles_n, pid % n_tiles_n
