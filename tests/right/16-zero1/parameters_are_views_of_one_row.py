# As DeepSpeed does it: the parameters become views of one row, which is kept, and this rank's part is a view of it too.
class ZeRO1:
    def __init__(self, params, comm, make_optimizer):
        self.params, self.comm = list(params), comm
        self.sizes = [p.numel() for p in self.params]
        self.row = self.filled_up([p.detach() for p in self.params])
        for p, part in zip(self.params, self.row.split([*self.sizes, len(self.row) - sum(self.sizes)])):
            p.data = part.view_as(p)
        self.mine = self.row.view(comm.world_size, -1)[comm.rank]
        self.optimizer = make_optimizer([self.mine])

    def filled_up(self, tensors):
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        return F.pad(flat, (0, -len(flat) % self.comm.world_size))

    @torch.no_grad()
    def step(self):
        grads = self.filled_up([torch.zeros_like(p) if p.grad is None else p.grad for p in self.params])
        self.mine.grad = torch.empty_like(self.mine)
        self.comm.reduce_scatter_single(self.mine.grad, grads, op="avg")
        self.optimizer.step()
        self.comm.all_gather_single(self.row, self.mine)
