# hint: must go back among the rest
def merge_smallest(values):
    total = 0.0
    for value in sorted(values):
        total += value
    return total
