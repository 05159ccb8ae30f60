import numpy as np


def pack(lengths, window):
    windows, by_room, rooms = [], {}, 0
    for number in np.argsort(lengths, kind="stable")[::-1]:
        length = lengths[number]
        enough = rooms >> length
        room = window
        if enough:
            room = length + (enough & -enough).bit_length() - 1
            index = by_room[room].pop()
            if not by_room[room]:
                rooms &= ~(1 << room)
        else:
            index = len(windows)
            windows.append([])
        windows[index].append(number)
        by_room.setdefault(room - length, []).append(index)
        rooms |= 1 << (room - length)
    return windows


def lay_out(documents, window):
    ids, positions, labels = np.zeros(window, np.int64), np.zeros(window, np.int64), np.full(window, IGNORED)
    ends = np.cumsum([0] + [len(one) for one in documents])
    for document, start, end in zip(documents, ends, ends[1:]):
        ids[start:end], positions[start:end] = document.numpy(), np.arange(end - start)
        labels[start : end - 1] = document[1:].numpy()
    made = map(torch.from_numpy, (ids, positions, labels, ends.astype(np.int32)))
    return dict(zip(("input_ids", "position_ids", "labels", "cu_seqlens"), made))
