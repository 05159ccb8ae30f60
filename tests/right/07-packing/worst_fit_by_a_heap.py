# The window with the most room, from a heap.
import heapq


def pack(lengths, window):
    windows, heap = [], []
    for number in sorted(range(len(lengths)), key=lambda n: -lengths[n]):
        if heap and -heap[0][0] >= lengths[number]:
            room, at = heapq.heappop(heap)
            room = -room
        else:
            windows.append([])
            at, room = len(windows) - 1, window
        windows[at].append(number)
        heapq.heappush(heap, (-(room - lengths[number]), at))
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
