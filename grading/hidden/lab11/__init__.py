"""Lab 11, torch.compile: hidden cases."""
