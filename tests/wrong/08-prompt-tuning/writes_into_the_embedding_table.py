# hint: The model's embedding table was changed
class PromptTuning(torch.nn.Module):
    def __init__(self, model, init_ids):
        super().__init__()
        self.model, self.init_ids = model.requires_grad_(False), init_ids
        self.prompt = torch.nn.Parameter(model.get_input_embeddings()(init_ids).detach().clone())

    def forward(self, input_ids, attention_mask, labels):
        batch, n_prompt = len(input_ids), len(self.prompt)
        self.model.get_input_embeddings().weight.data[self.init_ids] = self.prompt.data
        mask = torch.cat((attention_mask.new_ones(batch, n_prompt), attention_mask), dim=1)
        labels = torch.cat((labels.new_full((batch, n_prompt), -100), labels), dim=1)
        ids = torch.cat((self.init_ids.expand(batch, -1), input_ids), dim=1)
        return self.model(input_ids=ids, attention_mask=mask, labels=labels)
