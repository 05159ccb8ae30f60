# hint: partly filled wave is missing
def tiles_and_waves(rows, cols, tile_rows, tile_cols, n_sms):
    n_tiles = math.ceil(rows / tile_rows) * math.ceil(cols / tile_cols)
    n_waves = n_tiles // n_sms
    return n_tiles, n_waves, rows * cols / max(1, n_waves * n_sms * tile_rows * tile_cols)


def padded(n, itemsize, multiple_bytes):
    multiple = multiple_bytes // itemsize
    return math.ceil(n / multiple) * multiple
