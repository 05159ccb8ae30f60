# placeholder tokens, whose embeddings a hook replaces by the prompt; the start copied by index_select
class PromptTuning(torch.nn.Module):
    def __init__(self, model, init_ids):
        super().__init__()
        self.inner = model
        for parameter in self.inner.parameters():
            parameter.requires_grad_(False)
        rows = model.get_input_embeddings().weight.data.index_select(0, init_ids)
        self.prompt = torch.nn.Parameter(rows)

    def forward(self, input_ids, attention_mask, labels):
        n = self.prompt.size(0)

        def put_prompt(module, args, output):
            return torch.cat((self.prompt.repeat(len(output), 1, 1), output[:, n:]), 1)

        hook = self.inner.get_input_embeddings().register_forward_hook(put_prompt)
        left = torch.zeros(len(input_ids), n, dtype=torch.long)
        try:
            return self.inner(
                input_ids=torch.cat((left, input_ids), 1),
                attention_mask=torch.cat((left + 1, attention_mask), 1),
                labels=torch.cat((left - 100, labels), 1),
            )
        finally:
            hook.remove()
