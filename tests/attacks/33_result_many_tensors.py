"""A list of a million tensors, each of one element."""

ROW = 33
OUTCOMES = ("failed", "limit", "suspected")
ANSWER = "import torch\none = torch.zeros(1)\ndef rms(x, dim):\n    return [one] * 10**6"
