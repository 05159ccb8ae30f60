# hint: grows too fast with the size
def merge_smallest(values):
    parts = list(values)
    while len(parts) > 1:
        parts.sort()
        parts = [parts[0] + parts[1]] + parts[2:]
    return parts[0]
