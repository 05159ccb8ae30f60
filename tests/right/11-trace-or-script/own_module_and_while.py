# A loop whose length depends on values, a module with an `if self.training`, and branches that are functions.
def branch_lost():
    def halved(x):
        while x.norm() > 1:
            x = x / 2
        return x

    return halved, torch.ones(4), 100 * torch.ones(4)


class Switch(nn.Module):
    def forward(self, x):
        return x + 1 if self.training else x


def mode_lost():
    return Switch(), torch.zeros(2)


def stacked(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.cat([a, b], 1)


def fails_late():
    return stacked, (torch.ones(2, 1), torch.ones(2, 5)), (torch.ones(2, 1), torch.ones(3, 1))


class Both(nn.Module):
    def __init__(self, gate):
        super().__init__()
        self.up, self.down = gate.up, gate.down

    def forward(self, batch):
        return torch.cond(batch.mean() > 0, lambda x: self.up(x), lambda x: self.down(x), (batch,))


def export_gate(gate, example):
    shapes = {"batch": {0: torch.export.Dim.DYNAMIC}}
    return torch.export.export(Both(gate), (example,), dynamic_shapes=shapes)
