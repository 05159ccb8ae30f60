"""Lab 08, parameter-efficient fine-tuning: what is true of a right answer."""

# isort: off
# In the order of the notebook, which is the order in which `progress` lists them.
from labkit.oracles.lab08.lora import LORA_LINEAR
from labkit.oracles.lab08.inject import INJECT
from labkit.oracles.lab08.prompts import PROMPT_TUNING
from labkit.oracles.lab08.prefix import PREFIX_TUNING
from labkit.oracles.lab08.ptuning import P_TUNING
from labkit.oracles.lab08.nf4 import NF4
from labkit.oracles.lab08.frozen import FROZEN_NF4

# isort: on

__all__ = [
    "FROZEN_NF4",
    "INJECT",
    "LORA_LINEAR",
    "NF4",
    "PREFIX_TUNING",
    "PROMPT_TUNING",
    "P_TUNING",
]
