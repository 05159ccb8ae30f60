class WorkerSamples(torch.utils.data.IterableDataset):
    """As of a stream that is read from the start: each worker counts, and loads what is its own."""

    def __init__(self, load, n, rank, world_size, seed=0):
        self.args = load, n, rank, world_size, seed
        self.set_epoch(0)

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        load, n, rank, world_size, seed = self.args
        info = get_worker_info()
        worker = 0 if info is None else info.id
        n_workers = 1 if info is None else info.num_workers
        order = list(range(n))
        random.Random(1_000_003 * seed + self.epoch).shuffle(order)
        number = ((seed * 10_000 + self.epoch) * world_size + rank) * n_workers + worker
        generator = torch.Generator()
        generator.manual_seed(number)
        for count, index in enumerate(order[: n // world_size * world_size]):
            turn, owner = divmod(count, world_size)
            if owner == rank and turn % n_workers == worker:
                yield load(index, generator)
