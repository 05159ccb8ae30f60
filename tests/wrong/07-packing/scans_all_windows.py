# hint: count the operations
def pack(lengths, window):
    windows, rooms = [], []
    for number in sorted(range(len(lengths)), key=lambda n: -lengths[n]):
        for index, room in enumerate(rooms):
            if room >= lengths[number]:
                break
        else:
            windows.append([])
            rooms.append(window)
            index = len(windows) - 1
        windows[index].append(number)
        rooms[index] -= lengths[number]
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
