import numpy as np


class ShardSampler:
    """Yields numpy integers, a block of the shuffled order for each rank."""

    def __init__(self, n_samples, rank, world_size, seed=0, drop_last=False):
        self.size = n_samples // world_size if drop_last else -(-n_samples // world_size)
        self.n, self.rank, self.world_size, self.seed = n_samples, rank, world_size, seed
        self.set_epoch(0)

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return self.size

    def __iter__(self):
        order = np.random.default_rng([self.seed, self.epoch]).permutation(self.n)
        yield from np.resize(order, self.size * self.world_size)[self.rank * self.size :][: self.size]
