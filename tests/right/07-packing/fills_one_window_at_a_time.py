# Fills one window after the other, each time with the longest document that fits.
def pack(lengths, window):
    by_length = [[] for _ in range(window + 1)]
    for number, length in enumerate(lengths):
        by_length[length].append(number)
    left, sizes = len(lengths), sorted(set(lengths))
    windows = []
    while left:
        room, one = window, []
        while True:
            at = bisect_left(sizes, room + 1) - 1
            if at < 0:
                break
            size = sizes[at]
            one.append(by_length[size].pop())
            room -= size
            left -= 1
            if not by_length[size]:
                del sizes[at]
        windows.append(one)
    return windows


def lay_out(documents: list[Tensor], window: int) -> dict[str, Tensor]:
    """One window of these documents, each an int64 tensor of tokens: input_ids, position_ids, labels, cu_seqlens."""
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
