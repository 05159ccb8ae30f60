# mask and labels are padded on the left
class PromptTuning(torch.nn.Module):
    def __init__(self, model, init_ids):
        super().__init__()
        self.model = model.requires_grad_(False)
        self.prompt = nn.Parameter(model.get_input_embeddings()(init_ids).detach().clone())

    def forward(self, input_ids, attention_mask, labels):
        n, batch = len(self.prompt), len(input_ids)
        text = self.model.get_input_embeddings()(input_ids)
        prompt = self.prompt.expand(batch, -1, -1)
        pad = nn.functional.pad
        
        embeds = torch.cat((prompt, text), 1)
        mask = pad(attention_mask, (n, 0), value=1)
        labels = pad(labels, (n, 0), value=-100)
        return self.model(inputs_embeds=embeds, attention_mask=mask, labels=labels)
