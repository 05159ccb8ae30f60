# hint: the states are not cut
class ZeRO2:
    def __init__(self, params, comm, make_optimizer):
        self.params, self.comm = list(params), comm
        self.parts = {}
        self.optimizer = make_optimizer(self.params)
        for p in self.params:
            p.register_post_accumulate_grad_hook(self.reduce)

    def rows(self, tensor):
        n = self.comm.world_size
        return F.pad(tensor.flatten(), (0, -tensor.numel() % n)).view(n, -1)

    def reduce(self, p):
        rows = self.rows(p.grad)
        received = torch.empty_like(rows[0])
        self.comm.reduce_scatter_single(received, rows, op="avg")
        p.grad = None
        self.parts[p] = received if p not in self.parts else self.parts[p] + received

    @torch.no_grad()
    def step(self):
        for p in self.params:
            p.grad = torch.zeros_like(p)
            if p in self.parts:
                whole = torch.empty(self.comm.world_size, len(self.parts[p]))
                self.comm.all_gather_single(whole, self.parts[p])
                p.grad = whole.flatten()[: p.numel()].view_as(p)
        self.optimizer.step()
        for p in self.params:
            p.grad = None
        self.parts = {}
