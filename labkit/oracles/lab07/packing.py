"""Lab 07: what is true of packed windows, and what the usual mistakes look like."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import accumulate

import torch

from labkit.compare import inputs_untouched
from labkit.exercises.lab07.packing import IGNORED, Packing
from labkit.oracles.hints import once
from labkit.spec import CANNOT_TELL, Budget, CaseRun, Hint, KiB, Oracle

NAMES = ("input_ids", "position_ids", "labels", "cu_seqlens")
BYTES_PER_TOKEN = 96
"""Four results of 8 bytes a token, and room for twice as much on the way."""


def most_windows(run: CaseRun[Packing]) -> int:
    """First fit decreasing stays within one per cent and one window of what the tokens fill: on 7,000 draws of such
    lengths it never took more.
    """
    filled = -(-int(run.tree["lengths"].sum()) // run.case.window)
    return math.ceil(1.01 * filled) + 1


@once
def bins(run: CaseRun[Packing]) -> list[list[int]]:
    """The documents' numbers by window."""
    return [window.tolist() for window in run.got["order"].split(run.got["sizes"].tolist())]


@once
def counts(run: CaseRun[Packing]) -> torch.Tensor:
    """How often each document comes."""
    order = run.got["order"]
    known = order[(order >= 0) & (order < run.case.n_documents)]
    return torch.bincount(known, minlength=run.case.n_documents)


def each_once(run: CaseRun[Packing]) -> str | None:
    """Every document is in one window."""
    order, found = run.got["order"], counts(run)
    if strange := order[(order < 0) | (order >= run.case.n_documents)].tolist():
        return f"pack names document {strange[0]}; there are documents 0 to {run.case.n_documents - 1}"
    absent, twice = (found == 0).nonzero().flatten().tolist(), (found > 1).nonzero().flatten().tolist()
    if absent:
        return f"pack leaves {_some(absent)} out"
    return f"pack puts {_some(twice)} into more than one window" if twice else None


@once
def fillings(run: CaseRun[Packing]) -> torch.Tensor:
    """The tokens of each window."""
    window_of = torch.repeat_interleave(torch.arange(len(run.got["sizes"])), run.got["sizes"])
    return torch.zeros(len(run.got["sizes"]), dtype=torch.int64).index_add(
        0, window_of, run.tree["lengths"][run.got["order"]]
    )


def fit(run: CaseRun[Packing]) -> str | None:
    """No window holds more tokens than it can."""
    filled = fillings(run)
    over = (filled > run.case.window).nonzero().flatten().tolist()
    return f"window {over[0]} would hold {filled[over[0]]} tokens; {run.case.window} fit" if over else None


def few(run: CaseRun[Packing]) -> str | None:
    """About as few windows as the tokens fill."""
    n, most = len(run.got["sizes"]), most_windows(run)
    if n <= most:
        return None
    tokens = int(run.tree["lengths"].sum())
    return f"pack opens {n:,} windows of {run.case.window} for {tokens:,} tokens; {most:,} are enough"


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


def _some(numbers: list[int]) -> str:
    return f"document {numbers[0]}" if len(numbers) == 1 else f"{len(numbers):,} documents"


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def differs_as(name: str, mistake: Callable[[CaseRun[Packing]], torch.Tensor]) -> Callable[[CaseRun[Packing]], object]:
    """A diagnosis: the tensor is what the mistake makes of it. CANNOT_TELL where that is the right one."""

    def when(run: CaseRun[Packing]) -> object:
        wrong, wanted, found = mistake(run), true_layout(run)[name], run.got["laid_out"][name]
        if _same(wrong, wanted):
            return CANNOT_TELL
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


def padding_counts(run: CaseRun[Packing]) -> torch.Tensor:
    labels = true_layout(run)["labels"].clone()
    labels[sum(run.case.layout) :] = 0
    return labels


def one_segment(run: CaseRun[Packing]) -> torch.Tensor:
    return torch.tensor([0, sum(run.case.layout)])


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


def running_on(run: CaseRun[Packing]) -> torch.Tensor:
    return torch.arange(run.case.window)


def running_on_to_the_padding(run: CaseRun[Packing]) -> torch.Tensor:
    places = torch.arange(run.case.window)
    return torch.where(places < sum(run.case.layout), places, 0)


def pack_is_right(run: CaseRun[Packing]) -> bool:
    return each_once(run) is None and fit(run) is None


def sparse(run: CaseRun[Packing]) -> object:
    """Too many windows. CANNOT_TELL where so few are needed that any order does."""
    if few(run) is None:
        return CANNOT_TELL if laid_out(run) is None else False
    return pack_is_right(run)


def one_each(run: CaseRun[Packing]) -> bool:
    return len(run.got["sizes"]) == run.case.n_documents > 1


def in_given_order(run: CaseRun[Packing]) -> object:
    """The documents stand in the order in which they came, so that only the last window was ever open."""
    if few(run) is None:
        return CANNOT_TELL
    return torch.equal(run.got["order"], torch.arange(run.case.n_documents))


PACKING = Oracle(
    id="07-packing",
    judge=(inputs_untouched, each_once, fit, few, laid_out, attention_stays),
    budgets=(
        Budget(
            "peak_bytes",
            lambda run: BYTES_PER_TOKEN * run.case.window + 192 * KiB,
            "lay_out made something that grows with the square of the window: a mask with an entry for each pair of "
            "tokens. cu_seqlens says the same in a few numbers, and no mask is needed.",
        ),
    ),
    diagnose=(
        Hint(
            lambda run: each_once(run) is not None and bool((counts(run) == 0).any()) and fit(run) is None,
            "Documents are lost. Look at what happens to the window that is still open when the loop ends, and to a "
            "document that fits into no open window.",
        ),
        Hint(
            lambda run: each_once(run) is None and fit(run) is not None,
            "A window holds more tokens than there is room. A document fits where its length is at most what is left, "
            "and from then on that window has less left.",
        ),
        Hint(one_each, "Every document has a window to itself: that is padding, not packing."),
        Hint(
            in_given_order,
            "Only the last window was ever filled further, and every window that is left behind keeps a gap. Keep all "
            "windows open that have room.",
        ),
        Hint(
            sparse,
            "The windows keep gaps. Deal the longest documents first, while there is room everywhere, and let the "
            "short ones fill what is left.",
        ),
        Hint(
            differs_as_one_of("cu_seqlens", one_segment, whole_window),
            "cu_seqlens makes one sequence of the whole window, so every token attends to the documents before its "
            "own. It needs an entry at each border.",
        ),
        Hint(
            differs_as_one_of("cu_seqlens", with_padding, last_one_longer),
            "The padding belongs to no document: cu_seqlens ends where the last document ends, not at the window's "
            "end.",
        ),
        Hint(
            lambda run: run.got["laid_out"]["cu_seqlens"].dtype != torch.int32 and _right_but(run, "cu_seqlens"),
            "The numbers are right, but attention kernels for sequences of varying length read cu_seqlens as int32, "
            "and take int64 for something else or refuse it.",
        ),
        Hint(
            differs_as("cu_seqlens", lambda run: torch.tensor(run.case.layout)),
            "These are the documents' lengths. cu_seqlens has their running sum, beginning with 0.",
        ),
        Hint(
            differs_as("cu_seqlens", lambda run: true_layout(run)["cu_seqlens"][1:]),
            "cu_seqlens begins with 0, where the first document begins. It has one entry more than there are "
            "documents.",
        ),
        Hint(
            differs_as_one_of("position_ids", running_on, running_on_to_the_padding),
            "Positions run on through the whole window. A document's first token has position 0, wherever it stands: "
            "else the model learns that documents begin in the middle.",
        ),
        Hint(
            differs_as_one_of("labels", shifted_over_borders, shifted_into_padding),
            "At a border the label is the first token of the next document, which nothing in this one can predict. "
            "The last token of each document has the label -100, which the loss leaves out.",
        ),
        Hint(
            differs_as("labels", unshifted),
            "The labels are the tokens themselves, so the model would be asked for what it sees. The label of a token "
            "is the one after it.",
        ),
        Hint(
            differs_as("labels", unshifted_without_first),
            "These are the labels for a model that shifts them by itself. Here the label of a token stands beside it: "
            "labels[t] is the token after token t.",
        ),
        Hint(
            differs_as("labels", padding_counts),
            "The padding has labels, so the loss counts it. Give it -100.",
        ),
    ),
    call=lambda run: (
        f"pack(<{run.case.n_documents:,} lengths>, window={run.case.window}), and lay_out of documents with "
        f"{', '.join(map(str, run.case.layout))} tokens"
    ),
    axis="documents of one token, windows without padding, other lengths, and very many documents",
)


def _right_but(run: CaseRun[Packing], name: str) -> bool:
    """The values are right, whatever their dtype."""
    return _same(run.got["laid_out"][name], true_layout(run)[name])
