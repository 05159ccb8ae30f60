import math


def root_mean_square_of(row):
    numbers = row.tolist()
    return math.sqrt(math.fsum(number * number for number in numbers) / len(numbers))


def rms(x, dim):
    rows = x.movedim(dim, -1)
    flat = [root_mean_square_of(row) for row in rows.reshape(-1, rows.shape[-1])]
    return torch.tensor(flat, dtype=x.dtype).reshape(rows.shape[:-1])
