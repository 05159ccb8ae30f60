"""Lab 15: a script under torchrun: the command, and a process group that is gone afterwards.

The launch is real: torchrun's agent, two processes that meet over gloo on the loopback interface, SIGKILL. The agent
forks its ranks (`--run-path --start-method fork`), because a start from nothing loads PyTorch again for each rank of
each restart.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from labkit.ranks.pool import environment

N_RANKS = 2
SPARE_RESTARTS = 2
"""Beyond those that the kills ask for: a meeting that fails by itself costs no points."""
LAUNCH_S = 150.0
"""A launch takes some 4 s of CPU time, and a minute or more beside twenty other programs on two cores."""
QUIET_S = 60.0
"""Ranks that wait for each other for ever are ended when none has begun, stepped or saved for so long."""
LOOK_S = 0.5
SCRIPT, JOB, RESULT = "train.py", "job.pt", "result.pt"
_AGENT = "import torch._dynamo, torch.nn.parallel; from torch.distributed.run import main; main()"
"""torchrun, with what optimizers and DDP would load loaded once, before it forks."""


def command(tmp: Path, n_kills: int = 0) -> list[str]:
    """The command that launches the script in `tmp`.

    The meeting point is the agent's own, on 127.0.0.1 at a free port: no name has to be looked up.
    """
    return [
        *(sys.executable, "-c", _AGENT),
        f"--nproc-per-node={N_RANKS}",
        f"--max-restarts={n_kills + SPARE_RESTARTS}",
        *("--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0", "--local-addr=127.0.0.1"),
        *("--run-path", "--start-method=fork" if sys.platform == "linux" else "--start-method=spawn"),
        str(Path(__file__).with_name("on_rank.py")),
        *(str(tmp / "notes"), str(tmp / SCRIPT), str(tmp / "job")),
    ]


def run_bounded(argv: list[str], tmp: Path) -> int | None:
    """The exit code, or None where it had to be ended. What it printed is in `tmp`/log; nothing of it goes on."""
    # The agent keeps one store over all restarts, in which gloo's ranks would find the addresses of dead ones.
    env = {**environment(), "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1", "TMPDIR": str(tmp)}
    with open(tmp / "log", "wb") as log:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=tmp, env=env, start_new_session=True
        )
        try:
            return _ended(process, tmp / "notes")
        finally:
            # The ranks are in the agent's group, also those that it left behind.
            if process.poll() is None or _group_lives(process.pid):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _ended(process: subprocess.Popen, notes: Path) -> int | None:
    """The exit code, or None once LAUNCH_S are over, or QUIET_S since a rank noted anything. Loading may be longer."""
    seen, changed_s = set(), time.monotonic()
    until_s = changed_s + LAUNCH_S
    while (now_s := time.monotonic()) < until_s:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(LOOK_S)
        found = {(path.name, path.stat().st_size) for path in notes.glob("*-*")}
        if found != seen or not found:
            seen, changed_s = found, now_s
        elif now_s - changed_s > QUIET_S:
            break
    return None


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True
