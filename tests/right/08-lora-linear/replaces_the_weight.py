def update(layer):
    return layer.lora_B.detach() @ layer.lora_A.detach() * layer.factor


class LoRALinear(nn.Module):
    def __init__(self, base, rank, alpha, dropout=0.0):
        super().__init__()
        print("rank", rank)
        self.base = base
        base.weight.requires_grad = False
        if base.bias is not None:
            base.bias.requires_grad = False
        self.factor = alpha / rank
        self.drop = nn.Dropout(dropout) if dropout > 0 else nn.Identity()
        self.lora_A = nn.Parameter(nn.init.normal_(torch.empty(rank, base.in_features), std=1 / rank).to(base.weight))
        self.lora_B = nn.Parameter(nn.init.zeros_(torch.empty(base.out_features, rank)).to(base.weight))
        self.register_buffer("is_merged", torch.tensor(False))

    def forward(self, x):
        out = self.base(x)
        if not self.is_merged:
            out = out + (self.factor * self.drop(x)) @ self.lora_A.mT @ self.lora_B.mT
        return out

    def merge(self):
        if not self.is_merged:
            self.base.weight = nn.Parameter(self.base.weight + update(self), requires_grad=False)
            self.is_merged.fill_(True)

    def unmerge(self):
        if self.is_merged:
            self.base.weight = nn.Parameter(self.base.weight - update(self), requires_grad=False)
            self.is_merged.fill_(False)
