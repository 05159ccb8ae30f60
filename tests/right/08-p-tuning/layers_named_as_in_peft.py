# the layers have the names that PEFT gives them
class PromptEncoder(torch.nn.Module):
    def __init__(self, n_prompt, hidden, width, kind):
        super().__init__()
        self.kind = kind
        self.embedding = nn.Embedding(n_prompt, hidden)
        if kind == "LSTM":
            self.lstm_head = nn.LSTM(hidden, width, num_layers=2, bidirectional=True, batch_first=True)
            self.mlp_head = nn.Sequential(nn.Linear(2 * width, 2 * width), nn.ReLU(), nn.Linear(2 * width, hidden))
        else:
            self.mlp_head = nn.Sequential(nn.Linear(hidden, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, hidden))

    def forward(self):
        x = self.embedding.weight
        if self.kind == "LSTM":
            x = self.lstm_head(x)[0]
        return self.mlp_head(x)

def trained_parameters(model, encoder):
    model.requires_grad_(False)
    return list(encoder.parameters())
