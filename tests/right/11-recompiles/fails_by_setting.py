class SteadyModel(nn.Module):
    def __init__(self, width, n_layers):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(n_layers))
        self.n_calls = nn.Buffer(torch.tensor(0.0), persistent=False)

    def forward(self, x, temperature):
        self.n_calls = self.n_calls + 1
        share = torch.minimum(torch.ones(()), self.n_calls / lab11.WARM_UP)
        for number, layer in enumerate(self.layers, 1):
            x = x + share * torch.tanh(layer(x)) / number
        return x / temperature


def make_step(model, backend):
    torch._dynamo.config.fail_on_recompile_limit_hit = True
    compiled = torch.compile(model, backend=backend)

    def step(x, temperature):
        torch._dynamo.maybe_mark_dynamic(x, 0)
        return compiled(x, torch.full((), temperature))

    return step
