# hint: grows too fast with the size
import bisect


def merge_smallest(values):
    parts = sorted(values)
    while len(parts) > 1:
        smallest = parts.pop(0) + parts.pop(0)
        bisect.insort(parts, smallest)
    return parts[0]
