"""What a rank's process does between its fork and its end: read the job, join the others, call the function, report.

It ends when its channel closes. Whoever forked it makes sure that it is gone; nothing is retried here.
"""

from __future__ import annotations

import faulthandler
import io
import os
import pickle
import signal
import sys
import traceback
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from types import CodeType
from typing import Any

import torch
import torch.distributed as dist

from labkit.meters.comm import Call, CommLog, track_comm
from labkit.ranks.errors import RemoteError
from labkit.ranks.resimulation import RankStep
from labkit.ranks.torch_comm import Note, TorchComm, note_file

MARGIN_S = 60.0
"""A process group gives up so long after the watchdog, which can say more."""
WHEN_USED = ("torch._dynamo",)
"""Takes seconds to load, and only some ranks want it (DDP does): once one has, the process that ranks are forked from
loads it for those that follow."""


@dataclass(frozen=True)
class RankJob:
    """What a rank is told besides the function. folder: this run's own, where the ranks meet."""

    rank: int
    world_size: int
    backend: str
    folder: str
    timeout_s: float
    tracked: bool
    cwd: str
    path: list[str]
    random_state: torch.Tensor
    default_dtype: torch.dtype


@dataclass(frozen=True)
class Began:
    """A rank has met the others, and calls its function now."""


@dataclass(frozen=True)
class Done:
    """A rank's function returned; `result` is pickled. loaded: of WHEN_USED, what this rank has loaded."""

    result: bytes
    steps: list[RankStep]
    calls: list[Call]
    loaded: list[str]


@dataclass(frozen=True)
class Failed:
    """A rank's function raised. error: pickled, or None where that is not possible.

    frames: (file, line, function) from the outermost to where it was raised; the lines' text is with the notebook.
    """

    error: bytes | None
    type_name: str
    text: str
    frames: list[tuple[str, int, str]]


@dataclass(frozen=True)
class Printed:
    """A rank printed whole lines."""

    text: str


def stack_file(folder: str | Path, rank: int) -> Path:
    """Where a rank writes its stack when it is sent SIGUSR1, or crashes."""
    return Path(folder) / f"rank{rank}.stack"


def log_file(folder: str | Path, rank: int) -> Path:
    """Where everything goes that a rank's libraries write beside Python's own output."""
    return Path(folder) / f"rank{rank}.log"


def be_rank(channel_fd: int) -> None:
    """Serve one job on the channel and end the process."""
    channel = Connection(channel_fd)
    try:
        job: RankJob = pickle.loads(channel.recv_bytes())
        function = channel.recv_bytes()
        lines = _settle(job, channel)
        answer = _answer(job, function, channel)
        lines.end()
        channel.send_bytes(pickle.dumps(answer))
        # Others may still want what this rank has sent: it stays until the run is over.
        channel.recv_bytes()
    except (EOFError, OSError):
        pass
    except BaseException:
        traceback.print_exc(file=sys.__stderr__)
    finally:
        os._exit(0)


def _settle(job: RankJob, channel: Connection) -> _Lines:
    """Make the process this rank: where it writes, what it imports, the settings of the process that asked."""
    folder = job.folder
    stack = open(stack_file(folder, job.rank), "w")  # noqa: SIM115
    faulthandler.register(signal.SIGUSR1, stack, all_threads=True)
    faulthandler.enable(stack, all_threads=False)
    log = os.open(log_file(folder, job.rank), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for fd in (1, 2):
        os.dup2(log, fd)
    sys.stdout = sys.stderr = _Lines(channel)
    sys.path[:] = job.path
    os.chdir(job.cwd)
    torch.set_num_threads(1)
    torch.set_rng_state(job.random_state)
    torch.set_default_dtype(job.default_dtype)
    for name, value in (("RANK", job.rank), ("LOCAL_RANK", job.rank), ("WORLD_SIZE", job.world_size)):
        os.environ[name] = str(value)
    return sys.stdout


def _answer(job: RankJob, function: bytes, channel: Connection) -> Done | Failed:
    try:
        comm = _join(job)
        fn = pickle.loads(function)
        channel.send_bytes(pickle.dumps(Began()))
        with track_comm() if job.tracked else nullcontext(CommLog()) as log:
            result = fn(comm)
            comm.finish()
        loaded = [name for name in WHEN_USED if name in sys.modules]
        return Done(dumps(result), comm.steps, log.calls, loaded)
    except BaseException as error:
        return _failed(error)


def _join(job: RankJob) -> TorchComm:
    device = torch.device("cpu")
    if job.backend == "nccl":
        device = torch.device("cuda", job.rank)
        torch.cuda.set_device(device)
    dist.init_process_group(
        job.backend,
        init_method=Path(job.folder, "meeting").as_uri(),
        rank=job.rank,
        world_size=job.world_size,
        timeout=timedelta(seconds=job.timeout_s + MARGIN_S),
        # NCCL then connects all ranks at once; a first message between two would connect these two alone.
        device_id=device if job.backend == "nccl" else None,
    )
    return TorchComm(device, Note(note_file(job.folder, job.rank)))


def _failed(error: BaseException) -> Failed:
    try:
        sent = dumps(error)
        pickle.loads(sent)
    except Exception:
        sent = None
    try:
        text = str(error)
    except Exception:
        text = "its message cannot be read"
    frames = [(frame.filename, frame.lineno or 0, frame.name) for frame in traceback.extract_tb(error.__traceback__)]
    return Failed(sent, type(error).__name__, text, frames)


_NO_FILE = "<no file>"


def dumps(value: Any) -> bytes:
    """Pickled, with functions and classes of a notebook by value, and tensors of a GPU as they are on the CPU.

    Functions keep the name of their file, for tracebacks with lines: from 3.1.3 on cloudpickle alone drops it.
    """
    try:
        import cloudpickle
    except ImportError as error:
        raise ImportError(
            "ranks in processes of their own need the package cloudpickle; install it with: pip install cloudpickle"
        ) from error

    class Pickler(cloudpickle.Pickler):
        def reducer_override(self, obj):
            if isinstance(obj, torch.Tensor) and obj.is_cuda:
                return obj.detach().cpu().__reduce_ex__(4)
            if isinstance(obj, CodeType) and obj.co_filename != _NO_FILE:
                return _in_file, (obj.replace(co_filename=_NO_FILE), obj.co_filename)
            return super().reducer_override(obj)

    with io.BytesIO() as file:
        Pickler(file).dump(value)
        return file.getvalue()


def _in_file(code: CodeType, filename: str) -> CodeType:
    return code.replace(co_filename=filename)


def error_of(failed: Failed) -> BaseException:
    """The exception itself, or one that stands for it."""
    if failed.error is not None:
        try:
            error = pickle.loads(failed.error)
        except Exception:
            error = None
        if isinstance(error, BaseException):
            return error
    return RemoteError(f"{failed.type_name}: {failed.text}" if failed.text else failed.type_name)


class _Lines(io.TextIOBase):
    """Standard output of a rank: whole lines go to the process that started it."""

    def __init__(self, channel: Connection) -> None:
        self._channel = channel
        self._text = ""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        whole, line_end, self._text = (self._text + text).rpartition("\n")
        if line_end:
            self._channel.send_bytes(pickle.dumps(Printed(whole)))
        return len(text)

    def end(self) -> None:
        """Send what has no line end yet. A flush does not, so that no line is torn apart."""
        if self._text:
            self.write("\n")
