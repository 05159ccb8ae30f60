# The calls that take lists, and an optimizer of a dictionary of options; the flat tensor is made by torch.nn.utils.
from torch.nn.utils import parameters_to_vector, vector_to_parameters


class ZeRO1:
    def __init__(self, params, comm, make_optimizer):
        self.params, self.comm = [*params], comm
        self.n = parameters_to_vector(self.params).numel()
        self.shard = self.parts(parameters_to_vector(self.params).detach())[comm.rank].clone()
        self.optimizer = make_optimizer([{"params": [self.shard]}])

    def parts(self, flat):
        n = self.comm.world_size
        padded = flat.new_zeros(n * ((self.n + n - 1) // n))
        padded[: self.n] = flat
        return list(padded.chunk(n))

    def step(self):
        with torch.no_grad():
            flat = parameters_to_vector([torch.zeros_like(p) if p.grad is None else p.grad for p in self.params])
            self.shard.grad = torch.zeros_like(self.shard)
            self.comm.reduce_scatter(self.shard.grad, self.parts(flat))
            self.shard.grad /= self.comm.world_size
            self.optimizer.step()
            gathered = [torch.empty_like(self.shard) for _ in range(self.comm.world_size)]
            self.comm.all_gather(gathered, self.shard)
            vector_to_parameters(torch.cat(gathered)[: self.n], self.params)
