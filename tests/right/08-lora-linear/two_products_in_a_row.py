# multiplies by both factors without a layer for either
class LoRALinear(nn.Module):
    def __init__(self, base, rank, alpha, dropout=0.0):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.scale, self.merged = alpha / rank, False
        self.dropout = nn.Dropout(dropout)
        self.lora_A = nn.Parameter(torch.randn(rank, base.in_features, dtype=base.weight.dtype, device=base.weight.device) / base.in_features**0.5)
        self.lora_B = nn.Parameter(torch.zeros(base.out_features, rank, dtype=base.weight.dtype, device=base.weight.device))

    def forward(self, x):
        y = self.base(x)
        return y if self.merged else y + self.scale * (self.dropout(x) @ self.lora_A.T @ self.lora_B.T)

    def merge(self):
        if not self.merged:
            self.base.weight.data += self.scale * self.lora_B.data @ self.lora_A.data
            self.merged = True

    def unmerge(self):
        if self.merged:
            self.base.weight.data -= self.scale * self.lora_B.data @ self.lora_A.data
            self.merged = False
