"""Lab 14: sums over ranks by PyTorch, how close to them a result has to be, and what a wrong one is made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from labkit.compare import inputs_untouched
from labkit.oracles.hints import once
from labkit.spec import EXACT, CaseRun, Hint, Tolerance


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
    "That collective is what this exercise is about. Write it from comm.send, comm.recv, comm.isend and comm.irecv."
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
        "The values came another way than over the network. Ranks are separate processes when it counts: a global "
        "variable of one is not there on another, so send what the other needs."
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


@once
def have_sum(run: CaseRun) -> list[bool]:
    """Of each rank: whether what came back is the sum."""
    right = total(xs(run.tree))
    close = closeness(run.case.n_ranks, right.dtype)
    return [
        out.shape == right.shape and torch.allclose(out.double(), right.double(), rtol=close.rtol, atol=close.atol)
        for out in outs(run.got)
    ]


def is_mean(run: CaseRun) -> bool:
    """Every rank has the sum divided by the number of ranks."""
    right = total(xs(run.tree)).double()
    rtol = closeness(2 * run.case.n_ranks, xs(run.tree)[0].dtype).rtol
    return run.case.n_ranks > 1 and all(
        torch.allclose(out.double() * run.case.n_ranks, right, rtol=rtol, atol=0.0) for out in outs(run.got)
    )


def unit(n: int, rank: int) -> list[int]:
    """The shares of a result that is one rank's own tensor."""
    return [int(other == rank) for other in range(n)]


SUM_HINTS = (
    Hint(
        lambda run: run.case.n_elements and all(bool((out == 0).all()) for out in outs(run.got)),
        "Zeros came back on every rank. A tensor is received in place: make one with torch.empty_like, hand it to "
        "recv, and use it once recv has returned.",
    ),
    Hint(
        lambda run: (
            run.case.n_ranks > 1 and all(share == unit(run.case.n_ranks, r) for r, share in enumerate(each_share(run)))
        ),
        "Every rank returned its own tensor. Add what arrives to a copy of x, and return the copy.",
        everywhere=False,
    ),
    Hint(
        lambda run: any(max(share) > 1 for share in each_share(run)),
        "A rank's tensor is in the sum more than once. Add each message once, and replace a value that is complete "
        "instead of adding to it.",
        everywhere=False,
    ),
    Hint(
        lambda run: have_sum(run) == [True] + [False] * (run.case.n_ranks - 1),
        "Rank 0 has the sum and the others do not. It has to get back to all of them.",
    ),
    Hint(is_mean, "That is the mean. Asked for is the sum: divide by nothing.", everywhere=False),
    Hint(
        lambda run: any(0 in share for share in each_share(run)),
        "Some rank's tensor is missing from the sum. Follow it by hand for this number of ranks: to whom is it sent, "
        "and who adds it?",
        everywhere=False,
    ),
)
"""For an all-reduce whose values are wrong."""
