"""Lab 15, data parallel: what is true of a right answer."""

from labkit.oracles.lab15.amp_clip import AMP_CLIP
from labkit.oracles.lab15.ddp import DDP
from labkit.oracles.lab15.env import ENV
from labkit.oracles.lab15.launch import LAUNCH
from labkit.oracles.lab15.no_sync import NO_SYNC
from labkit.oracles.lab15.sampler import SAMPLER
from labkit.oracles.lab15.sync_bn import SYNC_BN

__all__ = [
    "AMP_CLIP",
    "DDP",
    "ENV",
    "LAUNCH",
    "NO_SYNC",
    "SAMPLER",
    "SYNC_BN",
]
