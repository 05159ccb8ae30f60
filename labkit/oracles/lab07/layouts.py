"""Lab 07: what is true of one window that was laid out, and what the usual mistakes make of it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate

import torch

from labkit.exercises.lab07.packing import IGNORED, Packing
from labkit.oracles.hints import once
from labkit.spec import CANNOT_TELL, CaseRun

NAMES = ("input_ids", "position_ids", "labels", "cu_seqlens")


@once
def true_layout(run: CaseRun[Packing]) -> dict[str, torch.Tensor]:
    """One window, written down document by document."""
    documents, n_free = run.tree["documents"], run.case.window - sum(run.case.layout)
    ends = list(accumulate(run.case.layout, initial=0))
    following = [torch.cat([document[1:], torch.tensor([IGNORED])]) for document in documents]
    return {
        "input_ids": torch.cat([*documents, torch.zeros(n_free, dtype=torch.int64)]),
        "position_ids": torch.cat([*map(torch.arange, run.case.layout), torch.zeros(n_free, dtype=torch.int64)]),
        "labels": torch.cat([*following, torch.full((n_free,), IGNORED)]),
        "cu_seqlens": torch.tensor(ends, dtype=torch.int32),
    }


def laid_out(run: CaseRun[Packing]) -> str | None:
    """The four tensors of a window are what they should be."""
    got, wanted = run.got["laid_out"], true_layout(run)
    if missing := [name for name in NAMES if not isinstance(got.get(name), torch.Tensor)]:
        return f"lay_out returns no tensor {missing[0]!r}"
    for name in NAMES:
        if got[name].shape != wanted[name].shape:
            return f"{name} has shape {tuple(got[name].shape)}, and should have {tuple(wanted[name].shape)}"
        wrong = (got[name] != wanted[name]).nonzero().flatten().tolist()
        if wrong:
            at = wrong[0]
            return f"{name}[{at}] is {got[name][at]}, and should be {wanted[name][at]}{_whose(run, name, at)}"
        if got[name].dtype != wanted[name].dtype:
            return f"{name} is {_dtype(got[name])}, and should be {_dtype(wanted[name])}"
    return None


def attention_stays(run: CaseRun[Packing]) -> str | None:
    """No document's loss has a gradient at another document's tokens."""
    if not run.got["leaks"]:
        return None
    i, j = run.got["leaks"][0]
    return f"with these cu_seqlens and labels the loss of document {i} has a gradient at the tokens of document {j}"


def _whose(run: CaseRun[Packing], name: str, at: int) -> str:
    """ " (the last token of document 0, 5 tokens long)"."""
    if name == "cu_seqlens":
        return ""
    ends = list(accumulate(run.case.layout))
    document = next((number for number, end in enumerate(ends) if at < end), None)
    if document is None:
        return " (padding)"
    place = at - ends[document] + run.case.layout[document]
    what = "the last token" if place == run.case.layout[document] - 1 else f"token {place}"
    return f" ({what} of document {document}, which has {run.case.layout[document]})"


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def differs_as(name: str, mistake: Callable[[CaseRun[Packing]], torch.Tensor]) -> Callable[[CaseRun[Packing]], object]:
    """A diagnosis: the tensor is what the mistake makes of it. CANNOT_TELL where that is right, and the tensor too."""

    def when(run: CaseRun[Packing]) -> object:
        wrong, wanted, found = mistake(run), true_layout(run)[name], run.got["laid_out"][name]
        if _same(wrong, wanted):
            return CANNOT_TELL if _same(found, wanted) else False
        return _same(found, wrong)

    return when


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.shape == other.shape and bool((one == other).all())


def shifted_over_borders(run: CaseRun[Packing]) -> torch.Tensor:
    ids = true_layout(run)["input_ids"]
    used = sum(run.case.layout)
    return torch.cat([ids[1:used], torch.full((run.case.window - used + 1,), IGNORED)])


def shifted_into_padding(run: CaseRun[Packing]) -> torch.Tensor:
    """All that stands behind a token is its label, padding too, but for the last place."""
    ids = true_layout(run)["input_ids"]
    return torch.cat([ids[1:], torch.tensor([IGNORED])])


def unshifted(run: CaseRun[Packing]) -> torch.Tensor:
    ids = true_layout(run)["input_ids"].clone()
    ids[sum(run.case.layout) :] = IGNORED
    return ids


def unshifted_without_first(run: CaseRun[Packing]) -> torch.Tensor:
    """As for a model that shifts the labels by itself."""
    ids = unshifted(run)
    ids[list(accumulate(run.case.layout, initial=0))[:-1]] = IGNORED
    return ids


def shifted_back(run: CaseRun[Packing]) -> torch.Tensor:
    """The label of a token is the one before it, in its document or over the boundary."""
    ids = true_layout(run)["input_ids"]
    labels = torch.cat([torch.tensor([IGNORED]), ids[:-1]])
    labels[list(accumulate(run.case.layout, initial=0))[:-1]] = IGNORED
    labels[sum(run.case.layout) :] = IGNORED
    return labels


def counted_padding(run: CaseRun[Packing]) -> torch.Tensor:
    """The places of the padding are counted as those of a document."""
    n_free = run.case.window - sum(run.case.layout)
    return torch.cat([*map(torch.arange, run.case.layout), torch.arange(n_free)])


def padding_counts(run: CaseRun[Packing]) -> torch.Tensor:
    labels = true_layout(run)["labels"].clone()
    labels[sum(run.case.layout) :] = 0
    return labels


def one_segment(run: CaseRun[Packing]) -> torch.Tensor:
    return torch.tensor([0, sum(run.case.layout)])


def rolled(run: CaseRun[Packing]) -> torch.Tensor:
    """What stands behind each place, and behind the last one the first."""
    return torch.roll(true_layout(run)["input_ids"], -1)


def by_ids(run: CaseRun[Packing]) -> torch.Tensor:
    """Places whose token is 0 count as padding."""
    right = true_layout(run)
    return torch.where(right["input_ids"] == 0, IGNORED, right["labels"])


def by_labels(run: CaseRun[Packing]) -> torch.Tensor:
    """Places whose label would be 0 count as padding."""
    labels = true_layout(run)["labels"]
    return torch.where(labels == 0, IGNORED, labels)


def whole_window(run: CaseRun[Packing]) -> torch.Tensor:
    return torch.tensor([0, run.case.window])


def with_padding(run: CaseRun[Packing]) -> torch.Tensor:
    """The padding as one more segment, or, where there is none, an empty one."""
    return torch.cat([true_layout(run)["cu_seqlens"], torch.tensor([run.case.window])])


def last_one_longer(run: CaseRun[Packing]) -> torch.Tensor:
    offsets = true_layout(run)["cu_seqlens"].clone()
    offsets[-1] = run.case.window
    return offsets


def differs_as_one_of(
    name: str, *mistakes: Callable[[CaseRun[Packing]], torch.Tensor]
) -> Callable[[CaseRun[Packing]], object]:
    """The same of several mistakes that one hint explains."""

    def when(run: CaseRun[Packing]) -> object:
        answers = [differs_as(name, mistake)(run) for mistake in mistakes]
        return True if True in answers else CANNOT_TELL if all(one is CANNOT_TELL for one in answers) else False

    return when


def padded_with_ignored(run: CaseRun[Packing]) -> torch.Tensor:
    ids = true_layout(run)["input_ids"].clone()
    ids[sum(run.case.layout) :] = IGNORED
    return ids


def running_on(run: CaseRun[Packing]) -> torch.Tensor:
    return torch.arange(run.case.window)


def running_on_to_the_padding(run: CaseRun[Packing]) -> torch.Tensor:
    places = torch.arange(run.case.window)
    return torch.where(places < sum(run.case.layout), places, 0)


def right_but(run: CaseRun[Packing], name: str) -> bool:
    """The values are right, whatever their dtype."""
    return _same(run.got["laid_out"][name], true_layout(run)[name])
