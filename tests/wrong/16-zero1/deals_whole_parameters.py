# hint: where whole parameters are dealt to ranks
class ZeRO1:
    def __init__(self, params, comm, make_optimizer):
        self.params, self.comm = list(params), comm
        mine = self.params[comm.rank :: comm.world_size]
        self.optimizer = make_optimizer(mine) if mine else None

    @torch.no_grad()
    def step(self):
        for p in self.params:
            p.grad = torch.zeros_like(p) if p.grad is None else p.grad
            self.comm.all_reduce(p.grad, op="avg")
        if self.optimizer:
            self.optimizer.step()
        for number, p in enumerate(self.params):
            self.comm.broadcast(p, src=number % self.comm.world_size)
