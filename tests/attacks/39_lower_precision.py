"""Computes in bfloat16, whatever it is given, and converts back."""

ROW = 39
HARMLESS = True
ANSWER = "import torch\ndef rms(x, dim):\n    return x.to(torch.bfloat16).float().square().mean(dim).sqrt().to(x.dtype)"
