def pack(lengths, window):
    size = 1
    while size < len(lengths):
        size *= 2
    tree, windows = [window] * (2 * size), []
    for number in sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True):
        at = 1
        while at < size:
            at = 2 * at + (tree[2 * at] < lengths[number])
        if at - size == len(windows):
            windows.append([])
        windows[at - size].append(number)
        tree[at] -= lengths[number]
        while at > 1:
            at //= 2
            tree[at] = max(tree[2 * at], tree[2 * at + 1])
    return windows


def lay_out(documents, window):
    result = {
        "input_ids": torch.zeros(window, dtype=torch.long),
        "position_ids": torch.zeros(window, dtype=torch.long),
        "labels": torch.full((window,), IGNORED),
    }
    ends = [0]
    for document in documents:
        place = slice(ends[-1], ends[-1] + len(document))
        result["input_ids"][place] = document
        result["position_ids"][place] = torch.arange(len(document))
        result["labels"][place][:-1] = document[1:]
        ends.append(place.stop)
    return {**result, "cu_seqlens": torch.IntTensor(ends)}
