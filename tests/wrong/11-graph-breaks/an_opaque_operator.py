# hint: It is one graph, but the work is not in it
from torch.library import custom_op


@custom_op("lab11_answer::all_of_it", mutates_args=())
def all_of_it(x: torch.Tensor, noise: torch.Tensor, weights: list[torch.Tensor]) -> torch.Tensor:
    x = x / x.abs().max().item() + 0.1 * noise
    for weight, bias in zip(weights[::2], weights[1::2]):
        y = F.linear(x, weight, bias)
        if y.norm() > x.norm():
            y = y * (x.norm() / y.norm())
        x = x + torch.relu(y)
    return x


@all_of_it.register_fake
def _(x, noise, weights):
    return torch.empty_like(x)


class OneGraph(lab11.BrokenModel):
    def forward(self, x, noise):
        x = all_of_it(x, noise, list(self.parameters()))
        self.mean.copy_(x.mean().detach())
        return x / (x.relu().sum() / (x > 0).sum())
