# hint: unmerge() copies back a weight that merge() had put aside
class LoRALinear(nn.Module):
    def __init__(self, base, rank, alpha, dropout=0.0):
        super().__init__()
        self.base = base
        base.requires_grad_(False)
        self.lora_A = nn.Parameter(base.weight.new_empty(rank, base.in_features))
        self.lora_B = nn.Parameter(base.weight.new_zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.lora_A, a=math.sqrt(5))
        self.scale = alpha / rank
        self.dropout = nn.Dropout(dropout)
        self.merged = False
        self._plain = None

    def forward(self, x):
        if self.merged:
            return self.base(x)
        return self.base(x) + self.scale * (self.dropout(x) @ self.lora_A.T) @ self.lora_B.T

    def merge(self):
        if self._plain is None:
            self._plain = self.base.weight.detach().clone()
            with torch.no_grad():
                self.base.weight.add_(self.lora_B @ self.lora_A, alpha=self.scale)
            self.merged = True

    def unmerge(self):
        if self._plain is not None:
            with torch.no_grad():
                self.base.weight.copy_(self._plain)
            self._plain = None
            self.merged = False
