"""Run a function on ranks that are processes, from a notebook cell: hand out the job, collect, and end what hangs.

The processes come from `pool.py` and talk over gloo or NCCL. What they send back is unpickled, so this is for one's
own code: the grader never runs it on anybody else's.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any

import torch

from labkit.meters.comm import open_logs
from labkit.ranks.cluster import Cluster
from labkit.ranks.comm import Comm
from labkit.ranks.errors import CommError, RankFailed, RanksHung, RemoteError
from labkit.ranks.pool import Ranks, shared_pool
from labkit.ranks.process import Began, Done, Failed, Printed, RankJob, dumps, error_of
from labkit.ranks.resimulation import resimulate
from labkit.ranks.stacks import last_lines, stack_of_crash, stacks_of, trace_of, waiting_for
from labkit.ranks.torch_comm import NOT_WAITED, note_file, read_note
from labkit.ranks.traffic import Traffic

MEET_S = 60.0
"""So long the ranks have to find each other."""
GRACE_S = 0.2
"""After a rank has failed, others may turn out to have failed first: so long they are listened to."""

MISSING_WAIT = ". Keep what isend returns and call its wait(): a message may leave only there"


def run_real(
    fn: Callable[[Comm], Any],
    world_size: int,
    backend: str,
    timeout_s: float,
    cluster: Cluster | None = None,
) -> tuple[list[Any], Traffic]:
    """Call `fn(comm)` in one process for each rank; the results in order, and what went through the communicators.

    Traffic is counted as for simulated ranks, from the steps that each rank wrote down; what a rank asks of
    `torch.distributed` directly is in `track_comm` only. What ranks print is printed here, a tag before each line. The
    time runs from when all ranks have met.
    Raises ValueError where the machine cannot run it, CommError (RanksHung after `timeout_s`) and RankFailed.
    """
    check_possible(world_size, backend, timeout_s)
    try:
        function = dumps(fn)
    except ImportError:
        raise
    except Exception as error:
        raise TypeError(
            f"the function cannot be sent to the ranks, because something that it uses cannot be pickled ({error}): "
            "make that inside of the function"
        ) from error
    logs = open_logs()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="ranks-"))
        pairs = [Pipe() for _ in range(world_size)]
        channels = [stack.enter_context(ours) for ours, _ in pairs]
        for _, theirs in pairs:
            stack.enter_context(theirs)
        ranks = stack.enter_context(shared_pool().ranks([theirs.fileno() for _, theirs in pairs]))
        for _, theirs in pairs:
            theirs.close()
        run = _Run(channels, ranks, folder, timeout_s)
        for rank in range(world_size):
            job = RankJob(
                rank=rank,
                world_size=world_size,
                backend=backend,
                folder=folder,
                timeout_s=timeout_s,
                tracked=bool(logs),
                cwd=os.getcwd(),
                path=[path or os.getcwd() for path in sys.path],
                random_state=torch.get_rng_state(),
                default_dtype=torch.get_default_dtype(),
            )
            run.send(rank, pickle.dumps(job), function)
        done = run.collect()
    for log in logs:
        log.calls.extend(call for one in done for call in one.calls)
    return [pickle.loads(one.result) for one in done], resimulate([one.steps for one in done], cluster)


def check_possible(world_size: int, backend: str, timeout_s: float) -> None:
    """Raise ValueError, with the way out, where these ranks cannot run on this machine."""
    if world_size < 1:
        raise ValueError(f"world_size is {world_size}: there must be at least one rank")
    if not timeout_s > 0:
        raise ValueError(f"timeout_s is {timeout_s}: the ranks need some time")
    if not (hasattr(os, "fork") and hasattr(socket, "send_fds")):
        raise ValueError("ranks in processes need Linux or macOS: use backend='simulated', which runs everywhere")
    if not torch.distributed.is_available():
        raise ValueError("this PyTorch was built without torch.distributed: use backend='simulated'")
    if problem := _no_loopback():
        raise ValueError(
            "ranks in processes talk over this machine's loopback network, which this program may not use "
            f"({problem}). While a notebook is graded that is as it should be, and costs no points; elsewhere use "
            "backend='simulated'"
        )
    if backend == "nccl":
        n_gpus = torch.cuda.device_count() if torch.distributed.is_nccl_available() else 0
        if n_gpus < world_size:
            has = f"{n_gpus} GPU" + "s" * (n_gpus != 1)
            verb = "is" if n_gpus == 1 else "are"
            raise ValueError(
                f"nccl needs a GPU for each rank: {world_size} are asked for and here {verb} {has}; use backend='gloo'"
            )


def _no_loopback() -> str | None:
    """Why there is no connecting to this machine itself; gloo would only say that it cannot resolve an address."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
            sock.bind(("127.0.0.1", 0))
    except OSError as error:
        return error.strerror or str(error)
    return None


class _Run:
    """The ranks of one run, from here."""

    def __init__(self, channels: list[Connection], ranks: Ranks, folder: str, timeout_s: float) -> None:
        self._channels = channels
        self._ranks = ranks
        self._folder = folder
        self._timeout_s = timeout_s
        self._deadline = time.monotonic() + MEET_S
        self._n_began = 0
        self._done: dict[int, Done] = {}
        self._failed: dict[int, Failed] = {}
        self._dead: list[int] = []

    def send(self, rank: int, *messages: bytes) -> None:
        """Hand a rank its job; one that has died already will be found when it is listened to."""
        try:
            for message in messages:
                self._channels[rank].send_bytes(message)
        except OSError:
            pass

    def collect(self) -> list[Done]:
        """Listen until all ranks are done. Raises what ended the run otherwise."""
        while len(self._done) < len(self._channels):
            if not self._listen(self._deadline - time.monotonic()):
                raise self._hung()
            if self._failed or self._dead:
                until = time.monotonic() + GRACE_S
                while self._listen(until - time.monotonic()):
                    pass
                raise self._failure()
        return [self._done[rank] for rank in range(len(self._channels))]

    def _listen(self, within_s: float) -> bool:
        """Take what has come, waiting for it at most so long; False when there was nothing."""
        open_ones = {
            channel: rank
            for rank, channel in enumerate(self._channels)
            if rank not in self._done and rank not in self._failed and rank not in self._dead
        }
        ready = wait(list(open_ones), max(within_s, 0)) if open_ones else []
        for channel in ready:
            rank = open_ones[channel]
            try:
                message = pickle.loads(channel.recv_bytes())
            except (EOFError, OSError):
                self._dead.append(rank)
                continue
            if isinstance(message, Began):
                self._n_began += 1
                if self._n_began == len(self._channels):
                    self._deadline = time.monotonic() + self._timeout_s
            elif isinstance(message, Printed):
                print("\n".join(f"[rank {rank}] {line}" for line in message.text.split("\n")))
            elif isinstance(message, Done):
                self._done[rank] = message
                self._ranks.load.update(message.loaded)
            else:
                self._failed[rank] = message
        return bool(ready)

    def _failure(self) -> Exception:
        """What to tell of: a rank that died rather than those that lost their connection to it."""
        if self._dead:
            rank = min(self._dead)
            code = self._ranks.end(self._dead).get(rank)
            how = f"ended with exit code {code}" if code is None or code >= 0 else f"was ended by {_signal(-code)}"
            text = f"the process of rank {rank} {how} before its function returned"
            error = RemoteError(text + last_lines(self._folder, rank))
            return RankFailed(rank, error, stack_of_crash(self._folder, rank), text)
        rank = min(self._failed)
        failed = self._failed[rank]
        error, trace = error_of(failed), trace_of(rank, failed)
        if isinstance(error, CommError):
            error.add_note(trace)
            return error
        return RankFailed(rank, error, trace)

    def _hung(self) -> RanksHung:
        left = [rank for rank in range(len(self._channels)) if rank not in self._done]
        for rank in left:
            os.kill(self._ranks.pids[rank], signal.SIGUSR1)
        stacks = stacks_of(self._folder, left)
        says = [f"rank {rank} " + waiting_for(self._folder, rank) for rank in left]
        notes = {rank: read_note(note_file(self._folder, rank)) for rank in sorted(self._done)}
        finished = [f"rank {rank} has finished{note}" for rank, note in notes.items()]
        all_began = self._n_began == len(self._channels)
        what = f"finish in {self._timeout_s:g} s" if all_began else f"all start in {MEET_S:g} s"
        text = f"the ranks did not {what}: {', '.join(says + finished)}"
        return RanksHung(text + MISSING_WAIT if NOT_WAITED in text else text, stacks)


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
