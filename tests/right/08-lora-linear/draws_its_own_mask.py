class LoRALinear(nn.Module):
    def __init__(self, base, rank, alpha, dropout=0.0):
        super().__init__()
        for p in base.parameters():
            p.requires_grad = False
        self.base, self.rank, self.alpha, self.p = base, rank, alpha, dropout
        like = {"dtype": base.weight.dtype, "device": base.weight.device}
        self.lora_A = nn.Parameter(torch.rand(rank, base.in_features, **like) - 0.5)
        self.lora_B = nn.Parameter(torch.zeros(base.out_features, rank, **like))
        self.in_base = False

    def forward(self, x):
        if self.in_base:
            return self.base(x)
        z = x
        if self.training and self.p:
            z = torch.where(torch.rand_like(x) < self.p, 0.0, x / (1 - self.p))
        z = nn.functional.linear(z, self.lora_A) * (self.alpha / self.rank)
        return torch.addmm(self.base(x).flatten(0, -2), z.flatten(0, -2), self.lora_B.T).unflatten(0, x.shape[:-1])

    @torch.no_grad()
    def merge(self):
        if not self.in_base:
            self.base.weight.addmm_(self.lora_B, self.lora_A, alpha=self.alpha / self.rank)
            self.in_base = True

    @torch.no_grad()
    def unmerge(self):
        if self.in_base:
            self.base.weight.addmm_(self.lora_B, self.lora_A, alpha=-self.alpha / self.rank)
            self.in_base = False
