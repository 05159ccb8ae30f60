class OneGraph(lab11.BrokenModel):
    def forward(self, x, noise):
        x = x / torch.linalg.vector_norm(x, ord=torch.inf) + 0.1 * noise
        for layer in self.layers:
            y = layer(x)
            x = x + torch.relu(torch.minimum(x.norm() / y.norm(), torch.ones(())) * y)
        with torch.no_grad():
            self.mean.copy_(x.mean())
        return x * (x > 0).sum() / x.clamp(min=0).sum()
