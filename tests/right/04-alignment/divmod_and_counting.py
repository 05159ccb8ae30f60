def tiles_and_waves(rows, cols, tile_rows, tile_cols, n_sms):
    tiles = [(r, c) for r in range(0, rows, tile_rows) for c in range(0, cols, tile_cols)]
    waves = [tiles[i : i + n_sms] for i in range(0, len(tiles), n_sms)]
    return [len(tiles), len(waves), torch.tensor(rows * cols, dtype=torch.float64) / (len(waves) * n_sms * tile_rows * tile_cols)]


def padded(n, itemsize, multiple_bytes):
    whole, rest = divmod(n * itemsize, multiple_bytes)
    return (whole + (rest > 0)) * multiple_bytes / itemsize
