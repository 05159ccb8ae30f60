"""Lab 15, data parallel: hidden cases."""

from grading.hidden.lab15.amp_clip import AMP_CLIP
from grading.hidden.lab15.ddp import DDP
from grading.hidden.lab15.env import ENV
from grading.hidden.lab15.launch import LAUNCH
from grading.hidden.lab15.no_sync import NO_SYNC
from grading.hidden.lab15.sampler import SAMPLER
from grading.hidden.lab15.sync_bn import SYNC_BN

__all__ = [
    "AMP_CLIP",
    "DDP",
    "ENV",
    "LAUNCH",
    "NO_SYNC",
    "SAMPLER",
    "SYNC_BN",
]
