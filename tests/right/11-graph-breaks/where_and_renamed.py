class OneGraph(lab11.BrokenModel):
    def forward(self, x, noise):
        x = torch.add(x / torch.linalg.vector_norm(x, float("inf")), noise, alpha=0.1)
        for layer in self.layers:
            y = layer(x)
            y = torch.where(y.norm() > x.norm(), y * (x.norm() / y.norm()), y)
            x = x + y.clamp(min=0)
        self.mean = x.mean().detach()
        return x * (x > 0).sum() / x.relu().sum()
