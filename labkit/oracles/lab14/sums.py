"""Lab 14: sums over ranks by PyTorch, how close to them a result has to be, and what a wrong one is made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from labkit.compare import inputs_untouched
from labkit.oracles.hints import once
from labkit.spec import CANNOT_TELL, EXACT, CaseRun, Hint, Tolerance


def total(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """The sum of the ranks' tensors in their dtype, floating-point ones summed in float64."""
    dtype = tensors[0].dtype
    wide = torch.float64 if dtype.is_floating_point else torch.int64
    return torch.stack([tensor.to(wide) for tensor in tensors]).sum(0).to(dtype)


def closeness(n: int, dtype: torch.dtype) -> Tolerance:
    """n terms of one sign, in any order: n-1 roundings, and one of the expected sum, of half an eps each."""
    return Tolerance(rtol=n * torch.finfo(dtype).eps) if dtype.is_floating_point else EXACT


def outs(run_or_got: Any) -> list[torch.Tensor]:
    """What each rank returned. Raises TypeError for complex numbers, which no hint is about."""
    got = run_or_got.got if isinstance(run_or_got, CaseRun) else run_or_got
    found = [rank["out"] for rank in got["ranks"]]
    if any(isinstance(out, torch.Tensor) and out.is_complex() for out in found):
        raise TypeError("complex numbers came back")
    return found


def xs(tree: dict) -> list[torch.Tensor]:
    """What each rank had."""
    return [rank["x"] for rank in tree["ranks"]]


def shares(tensors: Sequence[torch.Tensor], out: torch.Tensor) -> list[int] | None:
    """How often each rank's tensor is in `out`: [1, 1, ...] for the sum. None where it is no such combination, or
    has too few elements to tell."""
    columns = torch.stack([tensor.reshape(-1).double() for tensor in tensors], dim=1)
    wanted = out.reshape(-1).double()
    if len(wanted) < len(tensors) or columns.shape[0] != len(wanted) or not bool(wanted.isfinite().all()):
        return None
    found = torch.linalg.lstsq(columns, wanted[:, None]).solution[:, 0].round()
    close = closeness(2 * len(tensors), out.dtype).rtol * columns.abs().sum(1) + 1e-9
    return [int(n) for n in found] if bool(((columns @ found - wanted).abs() <= close).all()) else None


def replicas_identical(run: CaseRun) -> str | None:
    """All ranks have the same bits."""
    first, *others = outs(run)
    for rank, other in enumerate(others, start=1):
        if not torch.equal(first.contiguous().view(torch.uint8), other.contiguous().view(torch.uint8)):
            return f"ranks 0 and {rank} are both close to the sum, but not to the last bit the same"
    return None


replicas_identical.hint = (
    "The ranks added up in different orders, and a floating-point sum depends on the order. Let all have the sum from "
    "the same additions: made once and copied, or by two partners that add the same two numbers."
)


def messages_only(run: CaseRun) -> str | None:
    """No collective was called."""
    n = run.measured.get("collectives", 0)
    return f"a rank called {n:g} collective{'s' * (n != 1)}" if n else None


messages_only.hint = (
    "This exercise is about writing that collective yourself, from comm.send, comm.recv, comm.isend and comm.irecv."
)


Property = Callable[[CaseRun], str | None]


def over_the_wire(least_bytes: Callable[[Any], int]) -> tuple[Property, Property]:
    """Properties: the ranks together sent what the values cannot be had without."""

    def too_few(run: CaseRun) -> str | None:
        sent, least = run.measured.get("bytes_total", 0), least_bytes(run.case)
        if sent >= least:
            return None
        return f"the ranks sent {sent:g} bytes, and no program can do it with fewer than {least}"

    def something_was_sent(run: CaseRun) -> str | None:
        return None if run.measured.get("bytes_total", 0) else too_few(run)

    def all_was_sent(run: CaseRun) -> str | None:
        return too_few(run)

    something_was_sent.hint = (
        "The values did not come over the network. When the lab is graded, ranks are separate processes: a global "
        "variable of one does not exist on another, so send what the other needs."
    )
    all_was_sent.hint = (
        "The messages are too small: send every element that another rank needs, in the dtype of x. A narrower dtype "
        "rounds larger numbers, and a global variable does not reach another process."
    )
    return something_was_sent, all_was_sent


PROPERTIES = (inputs_untouched, replicas_identical, messages_only)


@once
def each_share(run: CaseRun) -> list[list[int]]:
    """Of each rank's result, how often it has each rank's tensor; raises where one is no combination of them."""
    found = [shares(xs(run.tree), out) for out in outs(run.got)]
    if None in found:
        raise ValueError("some result is no combination of the ranks' tensors")
    return found


def by_shares(holds: Callable[[list[list[int]]], Any]) -> Callable[[CaseRun], Any]:
    """A hint's condition on `each_share`, which cannot tell of one rank, or of fewer elements than ranks."""

    def when(run: CaseRun) -> Any:
        case = run.case
        return CANNOT_TELL if case.n_ranks == 1 or case.n_elements < case.n_ranks else holds(each_share(run))

    return when


@once
def have_sum(run: CaseRun) -> list[bool]:
    """Of each rank: whether what came back is the sum."""
    right = total(xs(run.tree))
    close = closeness(run.case.n_ranks, right.dtype)
    return [
        out.shape == right.shape and torch.allclose(out.double(), right.double(), rtol=close.rtol, atol=close.atol)
        for out in outs(run.got)
    ]


def is_mean(run: CaseRun) -> Any:
    """Every rank has the sum divided by the number of ranks. Of whole numbers a mean may be rounded in any way."""
    if run.case.n_ranks == 1 or not xs(run.tree)[0].is_floating_point():
        return CANNOT_TELL
    right = total(xs(run.tree)).double()
    rtol = closeness(2 * run.case.n_ranks, xs(run.tree)[0].dtype).rtol
    return all(torch.allclose(out.double() * run.case.n_ranks, right, rtol=rtol, atol=0.0) for out in outs(run.got))


def read_too_early(run: CaseRun) -> Any:
    """A result has NaN, which is in a tensor of floats from irecv until its wait."""
    out = outs(run.got)[0]
    if not out.is_floating_point() or not out.numel():
        return CANNOT_TELL
    return any(bool(one.isnan().any()) for one in outs(run.got))


def unit(n: int, rank: int) -> list[int]:
    """The shares of a result that is one rank's own tensor."""
    return [int(other == rank) for other in range(n)]


def own_only(found: list[list[int]]) -> bool:
    """Every rank has its own tensor."""
    return all(share == unit(len(found), rank) for rank, share in enumerate(found))


READ_TOO_EARLY = Hint(
    read_too_early,
    "NaN came back: some tensor was read before anything had been received into it. What irecv is given, and what "
    "torch.empty_like makes, holds no numbers until work.wait() or recv has returned.",
)
OWN_ONLY = Hint(
    by_shares(own_only), "Every rank returned its own tensor. Add what arrives to a copy of x, and return the copy."
)

ERRORS = {
    "changed the tensor that it was sending": "isend returns at once, while the tensor is still being read: call "
    "wait() on what it returned before you write into the tensor, and in any case before you return.",
    "an earlier irecv still receives": "Two messages on their way into one tensor overwrite each other, in any order. "
    "Give each message a tensor of its own, or wait for one before you start the next.",
    "list index out of range": "After the last place of a ring comes the first: take the index modulo the length. If "
    "the list comes from torch.chunk, it may also be too short: chunk returns fewer than n parts where the elements do "
    "not go round, and torch.tensor_split returns exactly n.",
}
"""The hint on an exception, by a part of its text."""

SUM_HINTS = (
    READ_TOO_EARLY,
    Hint(
        lambda run: CANNOT_TELL if not run.case.n_elements else all(bool((out == 0).all()) for out in outs(run.got)),
        "Zeros came back on every rank. A tensor is received in place: make one with torch.empty_like, hand it to "
        "recv, and use it once recv has returned.",
    ),
    OWN_ONLY,
    Hint(
        by_shares(lambda found: any(max(share) > 1 for share in found)),
        "A rank's tensor is in the sum more than once. Add each message once, and replace a value that is complete "
        "instead of adding to it.",
    ),
    Hint(
        lambda run: (
            CANNOT_TELL if run.case.n_ranks == 1 else have_sum(run) == [True] + [False] * (run.case.n_ranks - 1)
        ),
        "Rank 0 has the sum and the others do not. It has to get back to all of them.",
    ),
    Hint(is_mean, "That is the mean. The exercise asks for the sum: do not divide."),
    Hint(
        by_shares(lambda found: any(0 in share for share in found)),
        "Some rank's tensor is missing from the sum. Follow it by hand for this number of ranks: to whom is it sent, "
        "and who adds it?",
    ),
)
"""For an all-reduce whose values are wrong."""
