# deals as many as are needed, from the beginning again past the end
class ShardSampler(Sampler):
    def __init__(self, n_samples, rank, world_size, seed=0, drop_last=False):
        self.n_samples, self.rank, self.world_size = n_samples, rank, world_size
        self.seed, self.drop_last, self.epoch = seed, drop_last, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        if self.drop_last:
            return self.n_samples // self.world_size
        return math.ceil(self.n_samples / self.world_size)

    def __iter__(self):
        generator = torch.Generator().manual_seed(hash((self.seed, self.epoch)))
        order = torch.randperm(self.n_samples, generator=generator).tolist()
        dealt = [order[i % len(order)] for i in range(len(self) * self.world_size)]
        return iter(dealt[self.rank :: self.world_size])
