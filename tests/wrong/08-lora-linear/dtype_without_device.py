# hint: A factor has not the dtype or the device
class LoRALinear(nn.Module):
    """base(x) + alpha / rank * lora_B @ lora_A @ dropout(x), in which only the two factors train."""

    def __init__(self, base: nn.Linear, rank: int, alpha: float, dropout: float = 0.0) -> None:
        """Keep base, frozen, as self.base; make self.lora_A (rank, n_in) and self.lora_B (n_out, rank)."""
        super().__init__()
        self.base = base.requires_grad_(False)
        self.scale = alpha / rank
        self.dropout = nn.Dropout(dropout)
        self.merged = False
        self.lora_A = nn.Parameter(base.weight.new_empty(rank, base.in_features))
        self.lora_B = nn.Parameter(torch.zeros(base.out_features, rank, dtype=base.weight.dtype))
        nn.init.kaiming_uniform_(self.lora_A, a=math.sqrt(5))

    def forward(self, x: Float[Tensor, "*rows n_in"]) -> Float[Tensor, "*rows n_out"]:
        """The layer's output, without ever forming a matrix of the weight's size."""
        if self.merged:
            return self.base(x)
        return self.base(x) + self.scale * (self.dropout(x) @ self.lora_A.T) @ self.lora_B.T

    def merge(self) -> None:
        """Add the update to base.weight, in place. Does nothing if it is merged already."""
        if not self.merged:
            self.base.weight.data += self.scale * self.lora_B.data @ self.lora_A.data
            self.merged = True

    def unmerge(self) -> None:
        """Take the update off base.weight again. Does nothing if it is not merged."""
        if self.merged:
            self.base.weight.data -= self.scale * self.lora_B.data @ self.lora_A.data
            self.merged = False
