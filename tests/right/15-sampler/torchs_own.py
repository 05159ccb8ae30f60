from torch.utils.data import DistributedSampler


class ShardSampler(DistributedSampler):
    def __init__(self, n_samples, rank, world_size, seed=0, drop_last=False):
        super().__init__(range(n_samples), world_size, rank, shuffle=True, seed=seed, drop_last=drop_last)
