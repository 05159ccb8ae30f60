# hint: level by level
def merge_smallest(values):
    values = sorted(values)
    while len(values) > 1:
        pairs = [a + b for a, b in zip(values[::2], values[1::2])]
        values = sorted(pairs + values[len(values) // 2 * 2 :])
    return values[0]
