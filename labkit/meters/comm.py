"""Record what ranks say to one another in a block: each call in order, its bytes, and what backward did meanwhile.

Sees the communicators of `labkit.ranks` and the collectives of `torch.distributed`, those that DDP and FSDP start
themselves included. Bytes are those of the tensor handed in, not what an algorithm sends for it (the `Traffic` of
`labkit.ranks` counts that), and no time is read: overlap is told in operations of the backward pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

import torch
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from labkit.measures import add_to
from labkit.meters.dispatch import Meter

_NAMES = {
    "allreduce_": "all_reduce",
    "allreduce_coalesced_": "all_reduce_coalesced",
    "allgather_": "all_gather",
    "_allgather_base_": "all_gather_into_tensor",
    "allgather_into_tensor_coalesced_": "all_gather_into_tensor_coalesced",
    "_reduce_scatter_base_": "reduce_scatter_tensor",
    "reduce_scatter_tensor_coalesced_": "reduce_scatter_tensor_coalesced",
    "alltoall_": "all_to_all",
    "alltoall_base_": "all_to_all_single",
    "recv_any_source_": "recv",
}
"""What the dispatcher calls otherwise than torch.distributed does; else the names differ by an underscore."""

_INPUT_IS_SECOND = {
    "all_gather",
    "all_gather_into_tensor",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "all_gather_into_tensor_coalesced",
    "reduce_scatter_tensor_coalesced",
    "all_to_all",
    "all_to_all_single",
    "gather",
    "scatter",
}
"""Calls whose operator takes the output first."""

_NO_CALLS = {"wait_tensor", "_wrap_tensor_autograd"}
_PEER_AT = {"send": 2, "recv": 2}
_NO_BACKWARD = -1


@dataclass
class Call:
    """One call of one rank. peer: the other rank of a message, or the root of a broadcast; None where there is none.

        Call(rank=0, name="all_reduce", n_bytes=4096, hidden_ops=12)

    hidden_ops: operations of the backward pass that this rank dispatched between the call and the wait for it. A call
    that waits at once hides nothing, nor does one that starts after the last gradient.
    """

    rank: int
    name: str
    n_bytes: int
    peer: int | None = None
    in_backward: bool = False
    hidden_ops: int = 0


@dataclass
class CommLog:
    """The calls of a block, in the order in which they were made; with several ranks, as they took turns.

    CommLog([Call(0, "all_reduce", 4096), Call(1, "all_reduce", 4096)])
    """

    calls: list[Call] = field(default_factory=list)
    _ops: Counter[int] = field(default_factory=Counter, repr=False)
    """Operations of each backward pass so far."""
    _under_way: dict[int, tuple[Call, int, int]] = field(default_factory=dict, repr=False)
    """By the call's place in `calls`: the call, its backward pass, and the operations of that before it."""

    @property
    def n_calls(self) -> int:
        """Calls of all ranks, barriers included."""
        return len(self.calls)

    @property
    def n_bytes(self) -> int:
        """Bytes handed to all calls; those of a message count once, where it is sent."""
        return sum(call.n_bytes for call in self._paid())

    @property
    def calls_by_name(self) -> Counter[str]:
        """How often each call was made."""
        return Counter(call.name for call in self.calls)

    @property
    def bytes_by_name(self) -> Counter[str]:
        """Bytes handed to each kind of call; "recv" and "irecv" are listed with what they were given."""
        found: Counter[str] = Counter()
        for call in self.calls:
            found[call.name] += call.n_bytes
        return found

    @property
    def order(self) -> list[str]:
        """The names of the calls in order."""
        return [call.name for call in self.calls]

    @property
    def overlap(self) -> float:
        """The share of the bytes whose call hid behind operations of a backward pass, 0 to 1; 0 without any bytes."""
        total = self.n_bytes
        return sum(call.n_bytes for call in self._paid() if call.hidden_ops) / total if total else 0.0

    def of(self, rank: int) -> CommLog:
        """The calls of one rank."""
        return CommLog([call for call in self.calls if call.rank == rank])

    def add(self, call: Call) -> Callable[[], None]:
        """Note a call as it starts; call what comes back when its rank has waited for it."""
        task = torch._C._current_graph_task_id()
        call = replace(call, in_backward=task != _NO_BACKWARD)
        self.calls.append(call)
        if not call.in_backward:
            return lambda: None
        place, before = len(self.calls) - 1, self._ops[task]
        self._under_way[place] = (call, task, before)

        def done() -> None:
            if self._under_way.pop(place, None):
                call.hidden_ops = self._ops[task] - before

        return done

    def note_operation(self) -> None:
        """An operation was dispatched; it counts if it is part of a backward pass.

        What DDP does once all gradients are there belongs to no node of the graph, and hides nothing.
        """
        if torch._C._current_autograd_node() is not None:
            self._ops[torch._C._current_graph_task_id()] += 1

    def close(self) -> None:
        """What nobody was seen to wait for was under way to the end of its backward pass."""
        for call, task, before in self._under_way.values():
            call.hidden_ops = self._ops[task] - before
        self._under_way.clear()

    def _paid(self) -> Iterator[Call]:
        return (call for call in self.calls if call.name not in ("recv", "irecv"))


@contextmanager
def track_comm() -> Iterator[CommLog]:
    """Record the communication of a block: `with track_comm() as log: ...`, then `log.calls`, `log.n_bytes`, ...

    Inside the function of a rank it records this rank; around `run_ranks`, all of them. Ranks that are processes of
    their own are recorded one after the other.
    """
    log = CommLog()
    try:
        with _CommMode(log):
            yield log
    finally:
        log.close()


@contextmanager
def count_communication(measured: dict[str, float], held: dict[str, Sequence[str]] | None = None) -> Iterator[None]:
    """Add the number of calls and their bytes to `measured["comm_calls"]` and `measured["comm_bytes"]`.

    Counted beside the student's code, and so a claim: the router's figures are the proof.
    """
    with ExitStack() as stack:
        log = stack.enter_context(track_comm())
        stack.callback(_add_to, measured, log)
        yield


def _add_to(measured: dict[str, float], log: CommLog) -> None:
    add_to(measured, "comm_calls", log.n_calls)
    add_to(measured, "comm_bytes", log.n_bytes)


def started(rank: int, name: str, tensors: Iterable[torch.Tensor], peer: int | None = None) -> Callable[[], None]:
    """For communicators: tell the open logs of a call as it starts; call what comes back once it was waited for."""
    logs = open_logs()
    if not logs:
        return lambda: None
    call = Call(rank, name, sum(tensor.nbytes for tensor in tensors), peer)
    ends = [log.add(call) for log in logs]

    def done() -> None:
        for end in ends:
            end()

    return done


def open_logs() -> tuple[CommLog, ...]:
    """For communicators: the logs that are open around the caller, in its thread."""
    return tuple(mode.log for mode in _open_modes())


@contextmanager
def observed(logs: Iterable[CommLog]) -> Iterator[None]:
    """For communicators: let logs that are open around a run see what this thread does, which is one of its ranks."""
    with ExitStack() as stack:
        for log in logs:
            stack.enter_context(_CommMode(log))
        yield


@contextmanager
def quietly() -> Iterator[None]:
    """For communicators: see nothing of the block, because the call that it carries out has been told already."""
    modes = _open_modes()
    for mode in modes:
        mode.n_quiet += 1
    try:
        yield
    finally:
        for mode in modes:
            mode.n_quiet -= 1


class _CommMode(Meter):
    """Tells one log of the collectives that reach the dispatcher, and of the operations of a backward pass."""

    def __init__(self, log: CommLog) -> None:
        super().__init__()
        self.log = log
        self.n_quiet = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if self.n_quiet:
            return func(*args, **kwargs)
        if func.namespace not in ("c10d", "_c10d_functional"):
            self.log.note_operation()
            return func(*args, **kwargs)
        name = str(func._overloadpacket).rpartition(".")[2]
        if name in _NO_CALLS:
            return func(*args, **kwargs)
        name = _NAMES.get(name, name.rstrip("_"))
        functional = func.namespace == "_c10d_functional"
        handed = args[1 if name in _INPUT_IS_SECOND and not functional else 0]
        n_bytes = 0 if name == "barrier" else sum(tensor.nbytes for tensor in _tensors(handed))
        peer = args[_PEER_AT[name]] if name in _PEER_AT and len(args) > _PEER_AT[name] else None
        if name == "broadcast" and not functional:
            peer = args[2]
        done = self.log.add(Call(_process_rank(), name, n_bytes, peer))
        result = func(*args, **kwargs)
        if _waits_at_once(func, args, kwargs):
            done()
        return result


def _process_rank() -> int:
    import torch.distributed as dist

    return dist.get_rank() if dist.is_initialized() else 0


def _open_modes() -> list[_CommMode]:
    # The modes of a thread are those of the backward passes that it starts, on whatever thread they run.
    return [mode for mode in _get_current_dispatch_mode_stack() if isinstance(mode, _CommMode)]


def _tensors(value: object) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _tensors(item)


def _waits_at_once(func, args: tuple, kwargs: dict) -> bool:
    """Newer versions of PyTorch tell the operator whether the caller goes on before it is done."""
    for at, argument in enumerate(func._schema.arguments):
        if argument.name == "async_op":
            return not (args[at] if at < len(args) else kwargs.get("async_op", True))
    return False
