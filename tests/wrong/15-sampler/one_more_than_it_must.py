# hint: Every rank gets more samples than it must
class ShardSampler(Sampler[int]):
    def __init__(self, n_samples, rank, world_size, seed=0, drop_last=False):
        self.n_samples, self.rank, self.world_size, self.seed, self.drop_last = n_samples, rank, world_size, seed, drop_last
        self.epoch = 0
    def set_epoch(self, epoch):
        self.epoch = epoch
    def __len__(self):
        if self.drop_last:
            return self.n_samples // self.world_size
        return self.n_samples // self.world_size + 1
    def __iter__(self):
        generator = torch.Generator().manual_seed(self.seed + self.epoch)
        order = torch.randperm(self.n_samples, generator=generator).tolist()
        total = len(self) * self.world_size
        dealt = [order[i % self.n_samples] for i in range(total)]
        return iter(dealt[self.rank::self.world_size])
