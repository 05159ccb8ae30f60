# slices for each layer, repeat in place of expand, positions and the loss written out
from types import SimpleNamespace


class PrefixEncoder(torch.nn.Module):
    def __init__(self, config, n_prompt, bottleneck=None):
        super().__init__()
        one = config.num_key_value_heads * config.head_dim
        self.direct = bottleneck is None
        self.embedding = torch.nn.Embedding(n_prompt, 2 * one * config.num_hidden_layers if self.direct else one)
        torch.nn.init.zeros_(self.embedding.weight)
        if not self.direct:
            self.transform = torch.nn.ModuleDict()
            self.transform["0"] = torch.nn.Linear(one, bottleneck)
            self.transform["2"] = torch.nn.Linear(bottleneck, 2 * one * config.num_hidden_layers)

    def forward(self):
        table = self.embedding(torch.arange(self.embedding.num_embeddings))
        return table if self.direct else self.transform["2"](self.transform["0"](table).tanh())


def with_prefix(model, prefix, input_ids, attention_mask, labels):
    batch, length = input_ids.shape
    n, heads, head_dim = len(prefix), model.config.num_key_value_heads, model.config.head_dim
    chunks = []
    for part in prefix.chunk(2 * model.config.num_hidden_layers, dim=1):
        chunks.append(part.reshape(n, heads, head_dim).transpose(0, 1).repeat(batch, 1, 1, 1))
    mask = torch.ones(batch, n + length)
    mask[:, n:] = attention_mask
    logits = model(
        inputs_embeds=model.get_input_embeddings()(input_ids),
        past_key_values=DynamicCache(list(zip(chunks[::2], chunks[1::2]))),
        attention_mask=mask,
        position_ids=torch.arange(n, n + length).expand(batch, -1),
        use_cache=True,
    ).logits
    guesses = logits[:, :-1].reshape(-1, logits.shape[-1])
    loss = torch.nn.functional.cross_entropy(guesses, labels[:, 1:].reshape(-1), ignore_index=-100)
    return SimpleNamespace(loss=loss, logits=logits)
