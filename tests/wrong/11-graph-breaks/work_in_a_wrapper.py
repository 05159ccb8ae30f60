# hint: is done elsewhere
@torch._dynamo.allow_in_graph
def work(x, noise, mean, *weights):
    x = x / x.abs().max() + 0.1 * noise
    for weight, bias in zip(weights[::2], weights[1::2]):
        y = F.linear(x, weight, bias)
        x = x + torch.relu(y * torch.clamp(x.norm() / y.norm(), max=1.0))
    mean.copy_(x.mean().detach())
    return x / (x.relu().sum() / (x > 0).sum())


class OneGraph(lab11.BrokenModel):
    def forward(self, x, noise):
        return work(x, noise, self.mean, *self.parameters())
