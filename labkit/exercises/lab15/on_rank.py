"""What torchrun starts on each rank: the student's script, its steps counted, and its end where the rank should die.

Run as `on_rank.py NOTES SCRIPT FOLDER`. It notes in the folder NOTES what happened and judges nothing; the script
sees `sys.argv == [SCRIPT, FOLDER]` and a process that is its own. Only the standard library and PyTorch are imported,
because every rank of every restart does it again.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import runpy
import shutil
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
from torch.optim.optimizer import register_optimizer_step_post_hook

CHECKPOINT = "checkpoint.pt"
PLAN = "plan.json"


class Rank:
    """One process of the run: what it does is noted, and at the planned moment it is gone."""

    def __init__(self, notes: Path, script: Path, folder: Path) -> None:
        self.notes, self.script, self.folder = notes, script, folder
        self.rank = int(os.environ["RANK"])
        self.restart = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
        kills = json.loads((notes / PLAN).read_text())
        n_done = len(list(notes.glob("killed-*")))
        mine = n_done < len(kills) and kills[n_done]["rank"] == self.rank
        self.number, self.kill = n_done, kills[n_done] if mine else {}
        self.n_steps = self.n_saves = 0
        self.is_saved = self.is_open = False
        # DDP's reducer, if it is the last to let go of a gloo group, joins the group's threads while it holds the
        # interpreter's lock, which such a thread may be waiting for: it is never the last.
        self.kept: list[object] = []

    def note(self, what: str, text: str) -> None:
        """Append to this process's own note at once: it may be killed in the next moment."""
        with open(self.notes / f"{what}-{self.rank}-{self.restart}", "a") as file:
            file.write(text)

    def watch(self) -> None:
        """Hook in where every script passes: an optimizer's step, torch.save, files."""
        # The agent's handlers came with the fork; a rank that waits in gloo would never get to run them.
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(number, signal.SIG_DFL)
        register_optimizer_step_post_hook(self.after_step)
        save = torch.save

        def noted_save(obj: object, f: object, *args: object, **kwargs: object) -> None:
            self.before_save(save, obj, f)
            save(obj, f, *args, **kwargs)

        torch.save = noted_save
        init = dist.init_process_group

        def kept_init(*args: object, **kwargs: object) -> None:
            init(*args, **kwargs)
            self.kept.append(dist.group.WORLD)

        dist.init_process_group = kept_init
        sys.addaudithook(self.before_file)
        self.note("began", ".")

    def after_step(self, *_: object) -> None:
        self.note("steps", ".")
        self.n_steps += 1
        if self.n_steps == self.kill.get("steps"):
            self.die()

    def before_save(self, save: Callable, obj: object, f: object) -> None:
        """torch.save is called; into memory it is no save yet. A doomed rank leaves half of the file behind."""
        name = _name(f)
        if name is None:
            return
        self.note("saves", name + "\n")
        if self.is_open and name == CHECKPOINT:
            self.is_open = False
            return
        self.is_saved = True
        if self.is_last_save():
            data = io.BytesIO()
            save(obj, data)
            half = data.getvalue()[: data.tell() // 2]
            if isinstance(f, str | os.PathLike):
                Path(f).write_bytes(half)
            else:
                f.write(half)
                f.flush()
            self.die()

    def before_file(self, event: str, args: tuple) -> None:
        """An audit hook: Python opens the checkpoint to write it anew, or gives another file its name.

        That is a save too, unless torch.save wrote that other file. A doomed rank ends right after the opening, which
        empties the file, and right before the renaming.
        """
        if event not in ("open", "os.rename"):
            return
        path, writes = (args[0], _writes(args[1], args[2])) if event == "open" else (args[1], True)
        if not writes or _name(path) != CHECKPOINT:
            return
        if event == "os.rename" and self.is_saved:
            self.is_saved = False
            return
        self.is_open = event == "open"
        if self.is_last_save():
            if event == "open":
                with contextlib.suppress(OSError):
                    os.truncate(path, 0)
            self.die()

    def is_last_save(self) -> bool:
        """Count a save; whether it is the one in which this rank is to die."""
        self.n_saves += 1
        return self.n_saves == self.kill.get("saves")

    def die(self) -> None:
        """Keep the checkpoint as it is at this moment, then end as a rank on a failing machine does."""
        with contextlib.suppress(OSError):
            shutil.copy(self.folder / CHECKPOINT, self.notes / f"left-{self.number}.pt")
        (self.notes / f"killed-{self.number}").write_text(str(self.restart))
        os.kill(os.getpid(), signal.SIGKILL)

    def run(self) -> None:
        """The script as `python SCRIPT FOLDER` would run it; an error is noted with its line."""
        sys.argv = [str(self.script), str(self.folder)]
        sys.path.insert(0, str(self.script.parent))
        try:
            runpy.run_path(str(self.script), run_name="__main__")
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)
            line = next((one.lineno for one in reversed(frames) if one.filename == str(self.script)), None)
            if isinstance(error, SyntaxError):
                line = error.lineno
            # Where the script lies here says nothing to who wrote it.
            text = str(error).replace(str(self.folder), "folder").replace(f"{self.script.parent}{os.sep}", "")
            text = text.strip().split("\n")[0][:200]
            self.note("error", f"rank {self.rank}, line {line} of the script: {type(error).__name__}: {text}")
            raise


def _name(file: object) -> str | None:
    """The name of the file that is written to; None for memory."""
    name = file if isinstance(file, str | os.PathLike) else getattr(file, "name", None)
    return Path(name).name if isinstance(name, str | os.PathLike) else None


def _writes(mode: object, flags: object) -> bool:
    if isinstance(mode, str):
        return any(letter in mode for letter in "wax+")
    return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR))


if __name__ == "__main__":
    rank = Rank(*map(Path, sys.argv[1:4]))
    rank.watch()
    rank.run()
