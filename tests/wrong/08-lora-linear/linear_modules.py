# hint: What trains should be two nn.Parameter
class LoRALinear(nn.Module):
    def __init__(self, base, rank, alpha, dropout=0.0):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.scale, self.merged = alpha / rank, False
        self.dropout = nn.Dropout(dropout)
        self.lora_A = nn.Linear(base.in_features, rank, bias=False)
        self.lora_B = nn.Linear(rank, base.out_features, bias=False)

    def forward(self, x):
        y = self.base(x)
        return y if self.merged else y + self.scale * (self.lora_B(self.lora_A(self.dropout(x))))

    def merge(self):
        if not self.merged:
            self.base.weight.data += self.scale * self.lora_B.data @ self.lora_A.data
            self.merged = True

    def unmerge(self):
        if self.merged:
            self.base.weight.data -= self.scale * self.lora_B.data @ self.lora_A.data
            self.merged = False
