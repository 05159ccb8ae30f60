def tile_of(pid: int, n_tiles_m: int, n_tiles_n: int, group: int) -> tuple[int, int]:
    """The tile (row, column) of program `pid`, where `group` rows of tiles are gone through column after column."""
    in_whole = n_tiles_m // group * group * n_tiles_n
    if pid < in_whole:
        number, rest = divmod(pid, group * n_tiles_n)
        col, row = divmod(rest, group)
        return number * group + row, col
    first = n_tiles_m // group * group
    col, row = divmod(pid - in_whole, n_tiles_m - first)
    return first + row, col
