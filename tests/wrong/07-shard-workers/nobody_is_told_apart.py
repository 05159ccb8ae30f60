# hint: Every worker of every rank yields the whole dataset
class WorkerSamples(IterableDataset):
    def __init__(self, load, n, rank, world_size, seed=0):
        self.load, self.n, self.rank, self.seed, self.epoch = load, n, rank, seed, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        generator = torch.Generator().manual_seed(hash((self.seed, self.epoch)))
        for index in torch.randperm(self.n, generator=generator).tolist():
            yield self.load(index, generator)
