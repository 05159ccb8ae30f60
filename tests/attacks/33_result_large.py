"""A result that is within the memory here and over the limit of a frame."""

ROW = 33
ANSWER = "import torch\ndef rms(x, dim):\n    return torch.zeros(10**8)"
