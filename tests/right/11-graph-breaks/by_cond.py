# The branch stays a branch, in the graph.
class OneGraph(lab11.BrokenModel):
    def forward(self, x, noise):
        x = x / x.abs().amax() + 0.1 * noise
        for layer in self.layers:
            y = layer(x)
            y = torch.cond(
                y.norm() > x.norm(), lambda x, y: y * (x.norm() / y.norm()), lambda x, y: y.clone(), (x, y)
            )
            x = x + torch.relu(y)
        self.mean.fill_(x.mean().detach())
        return x / torch.nanmean(torch.where(x > 0, x, torch.nan))
