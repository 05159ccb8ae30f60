# One all-gather for the parts of all parameters together; the hooks add up in place, in gradients made beforehand.
class ZeRO2:
    def __init__(self, params, comm, make_optimizer):
        self.params, self.comm = list(params), comm
        self.sizes = [-(-p.numel() // comm.world_size) for p in self.params]
        mine = [self.cut(p.detach())[comm.rank] for p in self.params]
        self.parts = [nn.Parameter(part.clone()) for part in mine]
        for p, part in zip(self.params, self.parts):
            part.grad = torch.zeros_like(part)
            p.register_post_accumulate_grad_hook(lambda p, part=part: self.reduce(p, part))
        self.optimizer = make_optimizer(self.parts)

    def cut(self, tensor):
        size = -(-tensor.numel() // self.comm.world_size)
        padded = tensor.new_zeros(size * self.comm.world_size)
        padded[: tensor.numel()] = tensor.reshape(-1)
        return list(padded.split(size))

    def reduce(self, p, part):
        pieces = self.cut(p.grad)
        p.grad = None
        mine = torch.empty_like(pieces[0])
        self.comm.reduce_scatter(mine, pieces)
        part.grad += mine / self.comm.world_size

    def step(self):
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=False)
        own = torch.cat([part.detach() for part in self.parts])
        gathered = [torch.empty_like(own) for _ in range(self.comm.world_size)]
        self.comm.all_gather(gathered, own)
        for k, p in enumerate(self.params):
            pieces = [one.split(self.sizes)[k] for one in gathered]
            p.data.copy_(torch.cat(pieces)[: p.numel()].view_as(p))
