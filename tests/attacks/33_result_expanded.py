"""A result of a trillion elements that takes four bytes here."""

ROW = 33
ANSWER = "import torch\ndef rms(x, dim):\n    return torch.zeros(1).expand(10**6, 10**6)"
