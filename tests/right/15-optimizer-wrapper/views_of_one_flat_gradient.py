class AveragingOptimizer:
    """All gradients are views of one tensor from the start, so nothing is copied together before it travels."""

    def __init__(self, optimizer, comm):
        self.optimizer, self.comm = optimizer, comm
        self.parameters = sum((list(group["params"]) for group in optimizer.param_groups), [])
        flat = torch.nn.utils.parameters_to_vector(self.parameters).detach()
        comm.broadcast(flat, 0)
        torch.nn.utils.vector_to_parameters(flat, self.parameters)
        self.clear()

    def clear(self):
        self.flat = torch.zeros(sum(p.numel() for p in self.parameters))
        for p, part in zip(self.parameters, self.flat.split([p.numel() for p in self.parameters])):
            p.grad = part.view_as(p)
        self.pending = True

    def synchronize(self):
        grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in self.parameters]
        self.flat = torch.cat([grad.reshape(-1) for grad in grads])
        self.comm.all_reduce(self.flat)
        self.flat /= self.comm.world_size
        for p, part in zip(self.parameters, self.flat.split([p.numel() for p in self.parameters])):
            p.grad = part.view_as(p)
        self.pending = False

    def step(self):
        if self.pending:
            self.synchronize()
        self.optimizer.step()
        self.pending = True


def wrapped_step(optimizer, loss, max_norm):
    loss.backward()
    optimizer.synchronize()
    torch.nn.utils.clip_grad_norm_(optimizer.parameters, max_norm)
    optimizer.step()
    optimizer.clear()
