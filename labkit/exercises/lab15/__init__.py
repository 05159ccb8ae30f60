"""Lab 15, data parallel: what is asked, fed and run."""

# isort: off
# In the order of the notebook, which is the order in which `progress` lists them.
from labkit.exercises.lab15.ddp import DDP
from labkit.exercises.lab15.no_sync import NO_SYNC
from labkit.exercises.lab15.amp_clip import AMP_CLIP
from labkit.exercises.lab15.sampler import SAMPLER
from labkit.exercises.lab15.sync_bn import SYNC_BN
from labkit.exercises.lab15.env import ENV
from labkit.exercises.lab15.launch import LAUNCH

# isort: on

__all__ = [
    "AMP_CLIP",
    "DDP",
    "ENV",
    "LAUNCH",
    "NO_SYNC",
    "SAMPLER",
    "SYNC_BN",
]
