# hint: the buckets begin at the last layer
class DDP(nn.Module):
    def __init__(self, module, comm, bucket_bytes):
        super().__init__()
        self.module, self.comm = module, comm
        for tensor in (*module.parameters(), *module.buffers()):
            comm.broadcast(tensor, src=0)
        self.buckets, bucket = [], []
        parameters = [p for p in module.parameters() if p.requires_grad]
        for p in parameters:
            bucket.append(p)
            if sum(one.nbytes for one in bucket) >= bucket_bytes or p is parameters[-1]:
                self.buckets.append(bucket)
                bucket = []
        self.bucket_of = {p: i for i, bucket in enumerate(self.buckets) for p in bucket}
        for p in parameters:
            p.register_post_accumulate_grad_hook(self.ready)
        self.start()

    def start(self):
        self.missing = [len(bucket) for bucket in self.buckets]
        self.flights = []

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def ready(self, p):
        self.missing[self.bucket_of[p]] -= 1
        while len(self.flights) < len(self.buckets) and self.missing[len(self.flights)] == 0:
            self.launch()

    def launch(self):
        bucket = self.buckets[len(self.flights)]
        flat = torch.cat([torch.zeros(p.numel()) if p.grad is None else p.grad.flatten() for p in bucket])
        self.flights.append((flat, self.comm.all_reduce(flat, op="avg", async_op=True)))

    def finish(self):
        while len(self.flights) < len(self.buckets):
            self.launch()
        for bucket, (flat, work) in zip(self.buckets, self.flights):
            work.wait()
            for p, mean in zip(bucket, flat.split([p.numel() for p in bucket])):
                p.grad = mean.view_as(p)
        self.start()


def train_step(ddp, optimizer, loss, max_norm):
    loss.backward()
    ddp.finish()
    torch.nn.utils.clip_grad_norm_(ddp.parameters(), max_norm)
    optimizer.step()
    optimizer.zero_grad()
