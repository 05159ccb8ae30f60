# hint: A function that is disabled still cuts the graph
@torch.compiler.disable
def mean_of_positive(x):
    return x[x > 0].mean()


@torch.compiler.disable
def limited(x, y):
    return y * (x.norm() / y.norm()) if y.norm() > x.norm() else y


class OneGraph(lab11.BrokenModel):
    def forward(self, x, noise):
        x = x / x.abs().max()
        x = x + 0.1 * noise
        for layer in self.layers:
            x = x + torch.relu(limited(x, layer(x)))
        self.mean.copy_(x.mean().detach())
        return x / mean_of_positive(x)
