"""Lab 14: what is true of reduce-scatter, of all-gather, and of an all-reduce made from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from labkit.compare import inputs_untouched
from labkit.exercises.lab14.reduce_scatter import UNTOUCHED, Parts
from labkit.oracles.lab14.four_all_reduces import ranks_in_words
from labkit.oracles.lab14.sums import (
    ERRORS,
    READ_TOO_EARLY,
    closeness,
    messages_only,
    outs,
    over_the_wire,
    read_too_early,
    replicas_identical,
    total,
)
from labkit.spec import CANNOT_TELL, EXACT, Budget, CaseRun, Hint, Oracle, Tolerance


def what_each_gets(run: CaseRun[Parts]) -> dict[str, Any]:
    """By the call: each rank's part of the sum, all parts on all ranks, the sum on all ranks."""
    case = run.case
    ranks = run.tree["ranks"]
    if case.call == "reduce_scatter":
        return {"ranks": [{"out": total([one["parts"][rank] for one in ranks])} for rank in range(case.n_ranks)]}
    if case.call == "all_gather":
        return {"ranks": [{"out": [one["part"] for one in ranks]}] * case.n_ranks}
    return {"ranks": [{"out": total([one["x"] for one in ranks])}] * case.n_ranks}


def near(run: CaseRun[Parts]) -> Tolerance:
    """What was gathered has been copied and has to be exact."""
    return EXACT if run.case.call == "all_gather" else closeness(run.case.n_ranks, getattr(torch, run.case.dtype))


def same_bits(run: CaseRun) -> str | None:
    """All ranks of the all-reduce have the same bits."""
    return replicas_identical(run) if run.case.call == "all_reduce" else None


same_bits.hint = replicas_identical.hint


def halves(case: Parts) -> int:
    """How many passes around the ring a call is worth."""
    return 2 if case.call == "all_reduce" else 1


def most_bytes(run: CaseRun[Parts]) -> int:
    """n-1 parts for each pass, at most of the longest kind."""
    case = run.case
    item_bytes = getattr(torch, case.dtype).itemsize
    return max(halves(case) * (case.n_ranks - 1) * max(case.sizes) * item_bytes, 1)


def all_bytes(case: Parts) -> int:
    """Over all ranks: each part travels n-1 times a pass."""
    return halves(case) * (case.n_ranks - 1) * case.n_bytes


def rounds(run: CaseRun[Parts]) -> int:
    """n-1 for each pass; a lone rank, which sends nothing, is allowed one."""
    return max(halves(run.case) * (run.case.n_ranks - 1), 1)


def in_words(run: CaseRun[Parts]) -> str:
    """The call with the names of its arguments, and what is in them."""
    case = run.case
    arguments = {
        "reduce_scatter": f"output, input_list), parts of {list(case.sizes)} elements",
        "all_gather": f"output_list, tensor), tensors of {list(case.sizes)} elements",
        "all_reduce": f"x), x of shape {case.shape}",
    }
    return f"{case.call}(comm, {arguments[case.call]}, {case.dtype}, on {ranks_in_words(case.n_ranks)}"


def first_call(name: str, when: Callable[[CaseRun[Parts]], Any]) -> Callable[[CaseRun[Parts]], Any]:
    """A hint's condition that asks only where the case makes this call."""
    return lambda run: CANNOT_TELL if run.case.call != name or run.case.n_ranks == 1 else when(run)


def sums_by_part(run: CaseRun[Parts]) -> list[torch.Tensor]:
    return [one["out"] for one in run.expected["ranks"]]


def one_ranks_part(run: CaseRun[Parts]) -> bool:
    """Each output is its part as some other rank alone had it."""
    ranks = run.tree["ranks"]
    return all(
        any(torch.equal(out, one["parts"][rank]) for other, one in enumerate(ranks) if other != rank)
        for rank, out in enumerate(outs(run.got))
    )


def neighbours_part_everywhere(run: CaseRun[Parts]) -> Any:
    """In the list of a rank, all parts but its own are those of the rank before it. Of two ranks that is right."""
    if run.case.n_ranks == 2 or len(set(run.case.sizes)) > 1:
        return CANNOT_TELL
    parts = [one["part"] for one in run.tree["ranks"]]
    return all(
        torch.equal(part, parts[rank if place == rank else rank - 1])
        for rank, gathered in enumerate(outs(run.got))
        for place, part in enumerate(gathered)
    )


def another_part(run: CaseRun[Parts]) -> Any:
    """Every rank has the sum of a part that is not its own."""
    if run.case.n_elements < run.case.n_ranks:
        return CANNOT_TELL
    right, rtol = sums_by_part(run), near(run).rtol

    def found(out: torch.Tensor) -> set[int]:
        fits = [index for index, part in enumerate(right) if part.shape == out.shape]
        return {index for index in fits if torch.allclose(out.double(), right[index].double(), rtol=rtol, atol=0)}

    places = [found(out) for out in outs(run.got)]
    return all(places) and all(rank not in place for rank, place in enumerate(places))


def own_part(run: CaseRun[Parts]) -> bool:
    """Nothing was added: each output is the rank's own part."""
    return all(
        torch.equal(out, one["parts"][rank]) for rank, (out, one) in enumerate(zip(outs(run.got), run.tree["ranks"]))
    )


def wrong_sum(run: CaseRun[Parts]) -> bool:
    """Some rank has not the sum, within its tolerance."""
    rtol, right = near(run).rtol, run.expected["ranks"][0]["out"].double()
    fine = [
        out.shape == right.shape and torch.allclose(out.double(), right, rtol=rtol, atol=0) for out in outs(run.got)
    ]
    return not all(fine)


def untouched(tensors: list[torch.Tensor]) -> bool:
    return all(bool((tensor == UNTOUCHED).all()) for tensor in tensors)


def only_own_untouched(rank: int, gathered: list[torch.Tensor]) -> bool:
    """Of what a rank gathered, its own part is as before the call, and the others are not."""
    return all(untouched([one]) == (other == rank) for other, one in enumerate(gathered) if len(one))


def some_untouched(gathered: list[torch.Tensor]) -> bool:
    """Some part that has elements is as before the call."""
    return any(len(one) > 0 and untouched([one]) for one in gathered)


def added_to_what_was_there(run: CaseRun[Parts]) -> bool:
    """Some output is right but for what it held before the call."""
    pairs = zip(run.expected["ranks"], run.got["ranks"], strict=True)
    both = ((right["out"], one["out"]) for right, one in pairs)
    if run.case.call == "all_gather":
        both = ((right, one) for rights, ones in both for right, one in zip(rights, ones, strict=True))
    rtol = closeness(run.case.n_ranks, getattr(torch, run.case.dtype)).rtol
    limits = {"rtol": rtol, "atol": abs(UNTOUCHED) * rtol}
    return any(
        len(right) > 0 and torch.allclose(one.double() - UNTOUCHED, right.double(), **limits) for right, one in both
    )


def reordered(run: CaseRun[Parts]) -> bool:
    """All parts are there, and not in the order of the ranks."""
    parts = [one["part"] for one in run.tree["ranks"]]
    if all(torch.equal(one, part) for gathered in outs(run.got) for one, part in zip(gathered, parts)):
        return False
    return all(
        all(any(torch.equal(one, part) for one in gathered) for part in parts) and len(gathered) == len(parts)
        for gathered in outs(run.got)
    )


REDUCE_SCATTER = Oracle(
    id="14-reduce-scatter",
    call=in_words,
    expect=what_each_gets,
    tolerance=near,
    judge=(inputs_untouched, same_bits, messages_only, *over_the_wire(all_bytes)),
    errors=ERRORS,
    budgets=(
        Budget(
            "bytes_sent",
            most_bytes,
            "Each of reduce-scatter and all-gather lets a rank send n-1 parts, (n-1)/n of S bytes. A whole "
            "all-reduce inside reduce-scatter, or one rank that serves all the others, sends more.",
        ),
        Budget(
            "bytes_total",
            lambda run: max(all_bytes(run.case), 1),
            "Each of reduce-scatter and all-gather sends (n-1) times S bytes over all ranks.",
        ),
        Budget(
            "seconds",
            rounds,
            "Each of the two takes n-1 rounds, in which every rank sends one part and receives one. Where all send to "
            "rank 0 first, and then to rank 1, they queue.",
            unit="rounds",
        ),
    ),
    diagnose=(
        Hint(
            lambda run: CANNOT_TELL if run.case.call == "all_gather" else read_too_early(run),
            READ_TOO_EARLY.text,
        ),
        Hint(
            first_call("reduce_scatter", lambda run: untouched(outs(run.got))),
            "`output` is as it was before the call. Write into the tensor itself: output.copy_(...) does, and "
            "output = ... only gives the name to another tensor.",
        ),
        Hint(
            first_call("all_gather", lambda run: all(untouched(out) for out in outs(run.got))),
            "The tensors of `output_list` are as they were before the call. Write into them, with copy_ (the rank's "
            "own part, before it is sent) or recv; an assignment to output_list[r] puts another tensor there. The "
            "first part that a rank sends is its own: what it has of the others is not there yet.",
        ),
        Hint(
            first_call(
                "all_gather",
                lambda run: all(only_own_untouched(r, out) for r, out in enumerate(outs(run.got))),
            ),
            "A rank's own part is missing from its list: nobody sends it to itself, so copy it. An assignment to "
            "output_list[r] only puts another tensor there, and what the caller has stays as it was.",
        ),
        Hint(
            first_call("all_gather", lambda run: any(map(some_untouched, outs(run.got)))),
            "Some of `output_list` is as it was before the call: a rank sent a part on that it did not have yet. In "
            "step k it sends part r - k, which has come in the step before, and receives part r - 1 - k.",
        ),
        Hint(
            lambda run: CANNOT_TELL if run.case.call == "all_reduce" else added_to_what_was_there(run),
            "What the output held before the call was added to the result. The caller may hand over any tensor of the "
            "right size: replace its values with copy_ or recv.",
        ),
        Hint(
            first_call("reduce_scatter", own_part),
            "Every rank has its own part and nothing has been added to it. Part r has to come to rank r last, after "
            "all the others: rank r begins with part r-1.",
        ),
        Hint(
            first_call("reduce_scatter", one_ranks_part),
            "Every rank has its part as one other rank had it: what arrived replaced what was there. Add it.",
        ),
        Hint(
            first_call("all_gather", neighbours_part_everywhere),
            "In each step a rank sent its own part again, so its neighbour got nothing else. Send on what came in the "
            "step before: in step k part r - k.",
        ),
        Hint(
            first_call("reduce_scatter", another_part),
            "Every rank has a finished part, but another rank's. Start with the part before your own: it then takes "
            "n-1 steps until yours arrives.",
        ),
        Hint(
            first_call("all_gather", reordered),
            "The parts have all arrived and stand in the wrong places: part r belongs at output_list[r]. In step k the "
            "part that comes from rank r-1 is that of rank r-1-k.",
        ),
        Hint(
            lambda run: run.case.call == "all_reduce" and wrong_sum(run),
            "The two halves are right, and their combination is not: split x, reduce-scatter, all-gather into a list, "
            "join the list, and give it the shape of x.",
        ),
    ),
)
