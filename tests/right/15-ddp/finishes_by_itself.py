class DDP(nn.Module):
    """The last gradient's hook asks autograd to call `finish` when the whole backward pass is over."""

    def __init__(self, module, comm, bucket_bytes):
        super().__init__()
        self.inner, self.comm = module, comm
        for tensor in [*module.parameters(), *module.buffers()]:
            comm.broadcast(tensor.data, 0)
        self.buckets, self.sizes = [[]], [0]
        for p in list(module.parameters())[::-1]:
            if self.sizes[-1] >= bucket_bytes:
                self.buckets.append([])
                self.sizes.append(0)
            self.buckets[-1].append(p)
            self.sizes[-1] += p.numel() * p.element_size()
            if comm.world_size > 1:
                p.register_post_accumulate_grad_hook(self.hook)
        self.seen, self.sent = set(), []

    def forward(self, x):
        return self.inner(x)

    def hook(self, p):
        if not self.seen:
            torch.autograd.Variable._execution_engine.queue_callback(self.finish)
        self.seen.add(id(p))
        self.send(lambda bucket: all(id(p) in self.seen for p in bucket))

    def send(self, may_go):
        for bucket in self.buckets[len(self.sent) :]:
            if not may_go(bucket):
                break
            parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in bucket]
            flat = torch.nn.utils.parameters_to_vector(parts) / self.comm.world_size
            self.sent.append((bucket, flat, self.comm.all_reduce(flat, async_op=True)))

    def finish(self):
        self.send(lambda bucket: True)
        for bucket, flat, work in self.sent:
            work.wait()
            start = 0
            for p in bucket:
                p.grad = flat[start : start + p.numel()].reshape(p.shape).clone()
                start += p.numel()
        self.seen, self.sent = set(), []


def train_step(ddp, optimizer, loss, max_norm):
    loss.backward()
    torch.nn.utils.clip_grad_norm_(list(ddp.inner.parameters()), max_norm)
    optimizer.step()
    ddp.zero_grad()
