# The sum in place, which autograd does not see, and a hook on x's alias: no autograd function at all.
class ParallelMLP(nn.Module):
    def __init__(self, w_in, b_in, w_out, b_out, comm):
        super().__init__()
        self.comm = comm
        n, r = comm.world_size, comm.rank
        self.w_in = nn.Parameter(w_in.tensor_split(n)[r].clone())
        self.b_in = nn.Parameter(b_in.tensor_split(n)[r].clone())
        self.w_out = nn.Parameter(w_out.tensor_split(n, 1)[r].clone())
        self.b_out = nn.Parameter(b_out.clone())

    def summed(self, grad):
        total = grad.clone()
        self.comm.all_reduce(total)
        return total

    def forward(self, x):
        if x.requires_grad:
            x = x.view_as(x)
            x.register_hook(self.summed)
        y = F.gelu(x @ self.w_in.T + self.b_in) @ self.w_out.T
        self.comm.all_reduce(y)
        return y + self.b_out
