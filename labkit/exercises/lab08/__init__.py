"""Lab 08, parameter-efficient fine-tuning: what is asked, given and run."""

ORDER = (
    "lora-linear",
    "inject",
    "prompt-tuning",
    "prefix-tuning",
    "p-tuning",
    "nf4",
    "frozen-nf4",
)
