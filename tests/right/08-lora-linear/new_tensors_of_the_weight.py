# parameters like the base's weight, first drawn as nn.Linear's are
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

    def forward(self, x):
        if self.merged:
            return self.base(x)
        return self.base(x) + self.scale * (self.dropout(x) @ self.lora_A.T) @ self.lora_B.T

    def merge(self):
        if not self.merged:
            self.base.weight.data += self.scale * self.lora_B.data @ self.lora_A.data
            self.merged = True

    def unmerge(self):
        if self.merged:
            self.base.weight.data -= self.scale * self.lora_B.data @ self.lora_A.data
            self.merged = False
