# hint: The list was taken to be sorted
import bisect


def merge_smallest(values):
    parts = list(values)
    while len(parts) > 1:
        smallest = parts.pop(0) + parts.pop(0)
        bisect.insort(parts, smallest)
    return parts[0]
