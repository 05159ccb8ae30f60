# hint: in the order in which they came
def merge_smallest(values):
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total
