# hint: A window holds more tokens than there is room
def pack(lengths, window):
    windows, filled = [], window
    for number, length in enumerate(lengths):
        if filled >= window:
            windows.append([])
            filled = 0
        windows[-1].append(number)
        filled += length
    return windows


def lay_out(documents, window):
    borders = list(accumulate(map(len, documents), initial=0))
    padding = torch.zeros(window - borders[-1], dtype=torch.int64)
    nothing = torch.tensor([IGNORED])
    labels = [part for document in documents for part in (document[1:], nothing)]
    return {
        "input_ids": torch.cat([*documents, padding]),
        "position_ids": torch.cat([*(torch.arange(len(one)) for one in documents), padding]),
        "labels": torch.cat([*labels, padding + IGNORED]),
        "cu_seqlens": torch.tensor(borders, dtype=torch.int32),
    }
