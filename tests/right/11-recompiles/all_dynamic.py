# dynamic=True makes inputs of sizes and of Python numbers alike.
class SteadyModel(lab11.ServedModel):
    def __init__(self, width, n_layers):
        super().__init__(width, n_layers)
        del self.n_calls
        self.register_buffer("n_calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x, temperature):
        self.n_calls.add_(1)
        share = (self.n_calls / lab11.WARM_UP).clamp(max=1)
        for number, layer in enumerate(self.layers):
            x = torch.addcmul(x, share / (number + 1), layer(x).tanh())
        return x / temperature


def make_step(model, backend):
    return torch.compile(model, backend=backend, dynamic=True, fullgraph=True)
