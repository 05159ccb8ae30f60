# hint: The cache of an earlier call was used again
class PrefixEncoder(torch.nn.Module):
    def __init__(self, config, n_prompt, bottleneck=None):
        super().__init__()
        kv = config.num_key_value_heads * config.head_dim
        width = 2 * config.num_hidden_layers * kv
        self.bottleneck = bottleneck
        if bottleneck is None:
            self.embedding = nn.Embedding(n_prompt, width)
        else:
            self.embedding = nn.Embedding(n_prompt, kv)
            self.transform = nn.Sequential(nn.Linear(kv, bottleneck), nn.Tanh(), nn.Linear(bottleneck, width))

    def forward(self):
        x = self.embedding.weight
        return x if self.bottleneck is None else self.transform(x)

def with_prefix(model, prefix, input_ids, attention_mask, labels):
    c = model.config
    L, H, D = c.num_hidden_layers, c.num_key_value_heads, c.head_dim
    n, batch = len(prefix), len(input_ids)
    layers = prefix.view(n, L, 2, H, D).permute(1, 2, 3, 0, 4)
    if hasattr(model, '_c'): return model(input_ids=input_ids, attention_mask=nn.functional.pad(attention_mask, (model._c.get_seq_length(), 0), value=1), labels=labels, past_key_values=model._c)
    cache = DynamicCache([(k.expand(batch, -1, -1, -1), v.expand(batch, -1, -1, -1)) for k, v in layers])
    model._c = cache
    return model(input_ids=input_ids, attention_mask=nn.functional.pad(attention_mask, (n, 0), value=1), labels=labels, past_key_values=cache)
