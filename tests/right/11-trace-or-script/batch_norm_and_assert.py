# A number that is read by item(), a batch normalization that moves its statistics, and an assert on a shape.
def branch_lost():
    return lambda x: x * x.max().item(), torch.ones(3), 2 * torch.ones(3)


def mode_lost():
    return nn.BatchNorm1d(3), torch.arange(24.0).view(8, 3)


def two_rows(x: torch.Tensor) -> torch.Tensor:
    assert x.shape[0] == 2
    return 2 * x


def fails_late():
    return two_rows, (torch.ones(2),), (torch.ones(3),)


class Chosen(nn.Module):
    def __init__(self, gate):
        super().__init__()
        self.gate = gate

    def forward(self, x):
        return torch.cond(x.sum() > 0, self.gate.up, self.gate.down, (x,))


def export_gate(gate, example):
    return torch.export.export(Chosen(gate), (example,), dynamic_shapes=({0: torch.export.Dim.AUTO},))
