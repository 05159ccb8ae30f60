import numpy as np


class WorkerSamples(IterableDataset):
    """A seed for each sample of each epoch: the same augmentation on any grid. NumPy shuffles and deals blocks."""

    epoch = 0

    def __init__(self, load, n, rank, world_size, seed=0):
        super().__init__()
        self.load, self.n, self.rank, self.world_size, self.seed = load, n, rank, world_size, seed

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        order = np.random.default_rng([self.seed, self.epoch]).permutation(self.n)
        per_rank = self.n // self.world_size
        mine = order[self.rank * per_rank : (self.rank + 1) * per_rank]
        if info is not None:
            mine = np.array_split(mine, info.num_workers)[info.id]
        return (self.load(int(index), self._generator(int(index))) for index in mine)

    def _generator(self, index):
        sequence = np.random.SeedSequence([self.seed, self.epoch, index])
        return torch.Generator().manual_seed(int(sequence.generate_state(1, np.uint64)[0] >> 1))
