# hint: level by level
def merge_smallest(values):
    v = sorted(values)
    while len(v) > 1:
        nxt = [v[i] + v[i + 1] for i in range(0, len(v) - 1, 2)]
        if len(v) % 2:
            nxt.append(v[-1])
        v = nxt
    return v[0]
