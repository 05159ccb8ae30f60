"""The capstone's game: one script, trained at a tiny size and billed at a billion parameters.

    entry = enter(text)             # the script as text -> Entry, or Stopped with a reason
    bill(read(text))                # memory, FLOPs, bytes and seconds of one step at 1.1 billion parameters

`machine` has the machines, `script` what a script may hold, `cost` how time is worked out, `ghosts` whom to beat.
"""

from labkit.capstone.bill import Bill, bill
from labkit.capstone.entry import Entry
from labkit.capstone.ghosts import ghosts, standing
from labkit.capstone.kit import KIT as kit
from labkit.capstone.machine import MACHINES, Machine
from labkit.capstone.play import PUBLIC_SEEDS, Stopped, enter, entry_of, play
from labkit.capstone.score import TARGET_LOSS, ranked, share_of, virtual_hours
from labkit.capstone.script import Script, ScriptRefused, read
from labkit.capstone.size import BILLION, TINY, Size
from labkit.capstone.tiny import Trained, loss_of, train_tiny

__all__ = [
    "BILLION",
    "MACHINES",
    "PUBLIC_SEEDS",
    "TARGET_LOSS",
    "TINY",
    "Bill",
    "Entry",
    "Machine",
    "Script",
    "ScriptRefused",
    "Size",
    "Stopped",
    "Trained",
    "bill",
    "enter",
    "entry_of",
    "ghosts",
    "kit",
    "loss_of",
    "play",
    "ranked",
    "read",
    "share_of",
    "standing",
    "train_tiny",
    "virtual_hours",
]
