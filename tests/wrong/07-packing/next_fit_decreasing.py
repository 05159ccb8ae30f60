# hint: Only the last window was ever filled further
def pack(lengths, window):
    windows, room = [], 0
    for number in sorted(range(len(lengths)), key=lambda n: -lengths[n]):
        if lengths[number] > room:
            windows.append([])
            room = window
        windows[-1].append(number)
        room -= lengths[number]
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
