# a bucket is sent once all before it have been
class DDP(nn.Module):
    def __init__(self, module, comm, bucket_bytes):
        super().__init__()
        self.module, self.comm = module, comm
        with torch.no_grad():
            for p in module.parameters():
                comm.broadcast(p.data, 0)
            for b in module.buffers():
                comm.broadcast(b, 0)
        self.buckets = []
        cur, size = [], 0
        for p in reversed(list(module.parameters())):
            cur.append(p)
            size += p.numel() * 4
            if size >= bucket_bytes:
                self.buckets.append(cur)
                cur, size = [], 0
        if cur:
            self.buckets.append(cur)
        self.where = {}
        for i, b in enumerate(self.buckets):
            for p in b:
                self.where[p] = i
                p.register_post_accumulate_grad_hook(self.hook)
        self.reset()

    def reset(self):
        self.missing = [len(b) for b in self.buckets]
        self.sent = []

    def hook(self, p):
        self.missing[self.where[p]] -= 1
        while len(self.sent) < len(self.buckets) and self.missing[len(self.sent)] == 0:
            self.send()

    def send(self):
        bucket = self.buckets[len(self.sent)]
        flat = torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in bucket])
        self.sent.append((flat, self.comm.all_reduce(flat, op="avg", async_op=True)))

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def finish(self):
        while len(self.sent) < len(self.buckets):
            self.send()
        for bucket, (flat, work) in zip(self.buckets, self.sent):
            work.wait()
            for p, g in zip(bucket, flat.split([p.numel() for p in bucket])):
                p.grad = g.view_as(p).clone()
        self.reset()


def train_step(ddp, optimizer, loss, max_norm):
    loss.backward()
    ddp.finish()
    nn.utils.clip_grad_norm_(ddp.parameters(), max_norm)
    optimizer.step()
    optimizer.zero_grad()
