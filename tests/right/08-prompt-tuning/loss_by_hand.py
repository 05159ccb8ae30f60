# the loss computed by hand from the logits, the model held outside the module's own parameters
from types import SimpleNamespace


class PromptTuning(torch.nn.Module):
    def __init__(self, model, init_ids):
        super().__init__()
        object.__setattr__(self, "base", model)
        for parameter in model.parameters():
            parameter.requires_grad = False
        self.prompt = torch.nn.Parameter(model.get_input_embeddings().weight[init_ids].clone())

    def forward(self, input_ids, attention_mask, labels):
        n_prompt = self.prompt.shape[0]
        text = self.base.get_input_embeddings()(input_ids)
        embeds = torch.cat([torch.stack([self.prompt] * len(text)), text], 1)
        mask = torch.nn.functional.pad(attention_mask, (n_prompt, 0), value=1)
        places = torch.arange(mask.shape[1])[None]
        logits = self.base(inputs_embeds=embeds, attention_mask=mask.bool(), position_ids=places).logits
        guesses = logits[:, n_prompt - 1 : -1]
        loss = torch.nn.functional.cross_entropy(guesses.reshape(-1, guesses.shape[-1]), labels.reshape(-1))
        return SimpleNamespace(loss=loss, logits=logits)
