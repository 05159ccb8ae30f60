# hint: The prompt has no batch axis
class PromptEncoder(torch.nn.Module):
    def __init__(self, n_prompt, hidden, width, kind):
        super().__init__()
        self.embedding = torch.nn.Embedding(n_prompt, hidden)
        self.kind = kind
        if kind == "LSTM":
            self.lstm_head = torch.nn.LSTM(hidden, width, num_layers=2, bidirectional=True, batch_first=True)
            sizes = (2 * width, 2 * width, hidden)
        else:
            sizes = (hidden, width, width, hidden)
        layers = []
        for n_in, n_out in zip(sizes, sizes[1:]):
            layers += [torch.nn.Linear(n_in, n_out), torch.nn.ReLU()]
        self.mlp_head = torch.nn.Sequential(*layers[:-1])

    def forward(self):
        x = self.embedding.weight[None]
        if self.kind == "LSTM":
            x = self.lstm_head(x)[0]
        return self.mlp_head(x)


def trained_parameters(model, encoder):
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    return list(encoder.parameters())
