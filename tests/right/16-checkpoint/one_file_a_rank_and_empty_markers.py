import numpy as np
import torch


def save(store, step, rank, world_size, state):
    """All tensors of a rank in one file, in the order of their names."""
    data = b"".join(state[name].numpy().tobytes() for name in sorted(state))
    store.write(f"{step:08d}-of-{world_size:04d}.rank{rank}", data)


def finish(store, step, world_size):
    """That the file is there says it all."""
    store.write(f"whole/{step:08d}-{world_size:04d}", b"")


def load(store, rank, world_size, sizes):
    marks = store.list("whole/")
    if not marks:
        return None
    step, n_old = map(int, marks[-1].removeprefix("whole/").split("-"))
    found, offsets = {}, [0] * n_old
    for name in sorted(sizes):
        n, pieces = sizes[name], []
        old_k, k = -(-n // n_old), -(-n // world_size)
        for old in range(n_old):
            mine = range(max(rank * k, old * old_k), min((rank + 1) * k, (old + 1) * old_k, n))
            if len(mine):
                place = offsets[old] + 4 * (mine.start - old * old_k)
                file = f"{step:08d}-of-{n_old:04d}.rank{old}"
                pieces.append(np.frombuffer(store.read(file, place, 4 * len(mine)), dtype=np.float32))
            offsets[old] += 4 * len(range(old * old_k, min((old + 1) * old_k, n)))
        found[name] = torch.from_numpy(np.concatenate([np.zeros(0, dtype=np.float32), *pieces]))
    return step, found
