"""Lab 11, torch.compile: what is true of an answer."""
