"""Lab 06, optimizers: what is asked, given and run."""

ORDER = ("adamw", "bf16-states", "adam8bit", "adafactor", "step-in-backward", "foreach", "muon")
