# the table looked up by numbers, the parameters handed over as a generator
class PromptEncoder(torch.nn.Module):
    def __init__(self, n_prompt, hidden, width, kind):
        super().__init__()
        inner = 2 * width if kind == "LSTM" else width
        act = torch.nn.ReLU(inplace=True)
        self.mlp_head = torch.nn.Sequential()
        if kind == "LSTM":
            self.lstm_head = torch.nn.LSTM(hidden, width, 2, bidirectional=True)
        else:
            self.mlp_head.extend([torch.nn.Linear(hidden, width), act])
        self.mlp_head.extend([torch.nn.Linear(inner, inner), act, torch.nn.Linear(inner, hidden)])
        self.embedding = torch.nn.Embedding(n_prompt, hidden)
        self.n_prompt = n_prompt

    def forward(self):
        rows = self.embedding(torch.arange(self.n_prompt))
        if hasattr(self, "lstm_head"):
            rows, _ = self.lstm_head(rows)
        return self.mlp_head(rows)


def trained_parameters(model, encoder):
    model.requires_grad_(False).eval()
    return (p for module in encoder.children() for p in module.parameters() if p.requires_grad)
