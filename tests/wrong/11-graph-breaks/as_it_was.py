# hint: The graph ends at the lines named above
class OneGraph(lab11.BrokenModel):
    def forward(self, x, noise):
        x = x / x.abs().max().item()
        x = x + 0.1 * noise
        for layer in self.layers:
            y = layer(x)
            if y.norm() > x.norm():
                y = y * (x.norm() / y.norm())
            x = x + torch.relu(y)
        self.mean.copy_(x.mean().detach())
        print("mean", self.mean.item())
        return x / x[x > 0].mean()
