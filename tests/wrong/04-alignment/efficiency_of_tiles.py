# hint: as if all were full
def tiles_and_waves(rows, cols, tile_rows, tile_cols, n_sms):
    n_tiles = math.ceil(rows / tile_rows) * math.ceil(cols / tile_cols)
    n_waves = math.ceil(n_tiles / n_sms)
    return n_tiles, n_waves, n_tiles / (n_waves * n_sms)


def padded(n, itemsize, multiple_bytes):
    multiple = multiple_bytes // itemsize
    return math.ceil(n / multiple) * multiple
