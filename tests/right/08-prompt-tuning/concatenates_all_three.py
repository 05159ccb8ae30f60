# embeddings, mask and labels are each concatenated
class PromptTuning(torch.nn.Module):
    def __init__(self, model, init_ids):
        super().__init__()
        self.model = model.requires_grad_(False)
        start = model.get_input_embeddings()(init_ids)
        self.prompt = torch.nn.Parameter(start.detach().clone())

    def forward(self, input_ids, attention_mask, labels):
        batch, n_prompt = len(input_ids), len(self.prompt)
        text = self.model.get_input_embeddings()(input_ids)
        prompt = self.prompt.expand(batch, -1, -1)
        embeds = torch.cat((prompt, text), dim=1)
        mask = torch.cat((attention_mask.new_ones(batch, n_prompt), attention_mask), dim=1)
        labels = torch.cat((labels.new_full((batch, n_prompt), -100), labels), dim=1)
        return self.model(inputs_embeds=embeds, attention_mask=mask, labels=labels)
