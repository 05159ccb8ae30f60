# hint: the states are not cut
class ZeRO1:
    def __init__(self, params, comm, make_optimizer):
        self.params, self.comm = list(params), comm
        self.optimizer = make_optimizer(self.params)

    @torch.no_grad()
    def step(self):
        grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in self.params]
        flat = torch.cat([grad.flatten() for grad in grads])
        self.comm.all_reduce(flat, op="avg")
        for p, mean in zip(self.params, flat.split([p.numel() for p in self.params])):
            p.grad = mean.view_as(p)
        self.optimizer.step()
