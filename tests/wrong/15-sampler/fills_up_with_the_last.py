# hint: All samples are there
class ShardSampler(Sampler[int]):
    def __init__(self, n_samples, rank, world_size, seed=0, drop_last=False):
        self.n, self.rank, self.world, self.seed, self.drop = n_samples, rank, world_size, seed, drop_last
        self.epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return self.n // self.world if self.drop else -(-self.n // self.world)

    def __iter__(self):
        g = torch.Generator()
        g.manual_seed(self.seed * 1000003 + self.epoch)
        order = torch.randperm(self.n, generator=g).tolist()
        total = len(self) * self.world
        while len(order) < total:
            order.append(order[-1])
        order = order[:total]
        return iter(order[self.rank::self.world])
