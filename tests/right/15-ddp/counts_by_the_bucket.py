# closures over the bucket's number, and no method to begin again
class DDP(nn.Module):
    def __init__(self, module, comm, bucket_bytes):
        super().__init__()
        self.module, self.comm = module, comm
        for tensor in (*module.parameters(), *module.buffers()):
            comm.broadcast(tensor, 0)
        self.buckets, size = [[]], 0
        for p in reversed(list(module.parameters())):
            self.buckets[-1].append(p); size += p.nbytes
            if size >= bucket_bytes:
                self.buckets.append([]); size = 0
        self.buckets = [b for b in self.buckets if b]
        self.left = [len(b) for b in self.buckets]
        self.works = []
        for i, b in enumerate(self.buckets):
            for p in b:
                p.register_post_accumulate_grad_hook(lambda p, i=i: self.hook(i))
    def hook(self, i):
        self.left[i] -= 1
        while len(self.works) < len(self.buckets) and self.left[len(self.works)] == 0:
            self.send()
    def send(self):
        b = self.buckets[len(self.works)]
        flat = torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in b])
        self.works.append((flat, self.comm.all_reduce(flat, op="avg", async_op=True)))
    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)
    def finish(self):
        while len(self.works) < len(self.buckets):
            self.send()
        for b, (flat, work) in zip(self.buckets, self.works):
            work.wait()
            for p, g in zip(b, flat.split([p.numel() for p in b])):
                p.grad = g.view_as(p)
        self.left = [len(b) for b in self.buckets]
        self.works = []
def train_step(ddp, optimizer, loss, max_norm):
    loss.backward()
    ddp.finish()
    nn.utils.clip_grad_norm_(ddp.module.parameters(), max_norm)
    optimizer.step()
    optimizer.zero_grad()
