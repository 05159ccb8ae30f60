# hint: With a bottleneck the table is narrow
class PrefixEncoder(torch.nn.Module):
    def __init__(self, config, n_prompt, bottleneck=None):
        super().__init__()
        kv_width = config.num_key_value_heads * config.head_dim
        width = config.num_hidden_layers * 2 * kv_width
        self.embedding = torch.nn.Embedding(n_prompt, width)
        self.transform = torch.nn.Identity()
        if bottleneck is not None:
            first = torch.nn.Linear(width, bottleneck)
            second = torch.nn.Linear(bottleneck, width)
            self.transform = torch.nn.Sequential(first, torch.nn.Tanh(), second)

    def forward(self):
        return self.transform(self.embedding.weight)


def with_prefix(model, prefix, input_ids, attention_mask, labels):
    config, n_prompt, batch = model.config, len(prefix), len(input_ids)
    n_layers, heads, head_dim = config.num_hidden_layers, config.num_key_value_heads, config.head_dim
    layers = prefix.view(n_prompt, n_layers, 2, heads, head_dim).permute(1, 2, 3, 0, 4)
    cache = DynamicCache()
    for index, (keys, values) in enumerate(layers):
        cache.update(keys.expand(batch, -1, -1, -1), values.expand(batch, -1, -1, -1), index)
    mask = torch.cat((attention_mask.new_ones(batch, n_prompt), attention_mask), dim=1)
    return model(input_ids, past_key_values=cache, attention_mask=mask, labels=labels)
