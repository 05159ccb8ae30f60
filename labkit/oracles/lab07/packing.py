"""Lab 07: what is true of packed windows, and which mistake explains what."""

from __future__ import annotations

import torch

from labkit.compare import inputs_untouched
from labkit.exercises.lab07.packing import Packing
from labkit.oracles.lab07.layouts import (
    attention_stays,
    by_ids,
    by_labels,
    counted_padding,
    differs_as,
    differs_as_one_of,
    laid_out,
    last_one_longer,
    one_segment,
    padded_with_ignored,
    padding_counts,
    right_but,
    rolled,
    running_on,
    running_on_to_the_padding,
    shifted_back,
    shifted_into_padding,
    shifted_over_borders,
    true_layout,
    unshifted,
    unshifted_without_first,
    whole_window,
    with_padding,
)
from labkit.oracles.lab07.packed import counts, each_once, few, fit, no_empty_window
from labkit.spec import CANNOT_TELL, Budget, CaseRun, Hint, KiB, Oracle

BYTES_PER_TOKEN = 96
"""Four results of 8 bytes a token, and room for twice as much on the way."""


def holds_lengths(run: CaseRun[Packing]) -> bool:
    """The windows hold the documents' lengths, in place of their numbers."""
    return each_once(run) is not None and torch.equal(run.got["order"].sort().values, run.tree["lengths"].sort().values)


def numbers_of_the_sorted(run: CaseRun[Packing]) -> bool:
    """Every window fits if document n is the n-th by length, the shortest or the longest first."""
    if each_once(run) is not None or fit(run) is None:
        return False
    for longest_first in (True, False):
        lengths = run.tree["lengths"].sort(descending=longest_first).values[run.got["order"]]
        if all(int(of_window.sum()) <= run.case.window for of_window in lengths.split(run.got["sizes"].tolist())):
            return True
    return False


def pack_is_right(run: CaseRun[Packing]) -> bool:
    return each_once(run) is None and fit(run) is None


def sparse(run: CaseRun[Packing]) -> object:
    """Too many windows. CANNOT_TELL where so few are needed that any order does."""
    if few(run) is None:
        return CANNOT_TELL if laid_out(run) is None else False
    return pack_is_right(run)


def one_each(run: CaseRun[Packing]) -> bool:
    return len(run.got["sizes"]) == run.case.n_documents > 1


def one_after_the_other(run: CaseRun[Packing]) -> object:
    """The documents stand in the order in which they came, or from the longest to the shortest, so that only the last
    window was ever open.
    """
    if few(run) is None:
        return CANNOT_TELL
    steps = run.tree["lengths"][run.got["order"]].diff()
    return bool((steps <= 0).all()) or torch.equal(run.got["order"], torch.arange(run.case.n_documents))


PACKING = Oracle(
    id="07-packing",
    judge=(inputs_untouched, each_once, fit, no_empty_window, few, laid_out, attention_stays),
    budgets=(
        Budget(
            "peak_bytes",
            lambda run: BYTES_PER_TOKEN * run.case.window + 192 * KiB,
            "lay_out made something that grows with the square of the window: a mask with an entry for each pair of "
            "tokens. cu_seqlens says the same in a few numbers, and no mask is needed.",
        ),
    ),
    errors={
        "of cpu time": "If no loop runs forever, the work grows too fast. With 100,000 documents, nobody can look at "
        "all windows for each of them: look for the window by its room, of which there are only window + 1 values.",
        "pop from empty list": "A list is empty where a window is taken out of it. If it holds the windows with one "
        "certain room, then the sorted rooms still name that room, although no window has it any more: delete it there "
        "when its list becomes empty.",
    },
    diagnose=(
        Hint(
            lambda run: pack_is_right(run) and no_empty_window(run) is not None,
            "There are windows without a document. Each would be a row of nothing but padding: return only those that "
            "hold a document.",
        ),
        Hint(
            holds_lengths,
            "The windows hold the lengths of the documents. They should hold their numbers: lengths[number] is how "
            "long document `number` is.",
        ),
        Hint(
            lambda run: each_once(run) is not None and bool((counts(run) == 0).any()) and fit(run) is None,
            "Documents are lost. Look at what happens to the window that is still open when the loop ends, and to a "
            "document that fits into no open window.",
        ),
        Hint(
            numbers_of_the_sorted,
            "The windows hold places in the sorted list of lengths, so other documents fill them. A document "
            "keeps its number: sort the numbers by their lengths, sorted(range(len(lengths)), key=...), and leave "
            "lengths as it is.",
        ),
        Hint(
            lambda run: each_once(run) is None and fit(run) is not None,
            "A window holds more tokens than there is room. A document fits where its length is at most what is left, "
            "and from then on that window has less left.",
        ),
        Hint(one_each, "Every document has a window to itself: that is padding, not packing."),
        Hint(
            one_after_the_other,
            "Only the last window was ever filled further, and every window that is left behind keeps a gap. Keep all "
            "windows open that have room.",
        ),
        Hint(
            sparse,
            "The windows keep gaps. First fit decreasing leaves hardly any: take one document after the other, the "
            "longest first, and put each into a window, whichever it is, that still has room for it.",
        ),
        Hint(
            differs_as_one_of("cu_seqlens", one_segment, whole_window),
            "cu_seqlens makes one sequence of the whole window, so every token attends to the documents before its "
            "own. It needs an entry at each boundary.",
        ),
        Hint(
            differs_as_one_of("cu_seqlens", with_padding, last_one_longer),
            "The padding belongs to no document: cu_seqlens ends where the last document ends, not at the window's "
            "end.",
        ),
        Hint(
            lambda run: run.got["laid_out"]["cu_seqlens"].dtype != torch.int32 and right_but(run, "cu_seqlens"),
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
            differs_as("cu_seqlens", lambda run: true_layout(run)["cu_seqlens"][:-1]),
            "cu_seqlens ends where the last document begins. Where that ends belongs to it, too: it has one entry more "
            "than there are documents.",
        ),
        Hint(
            differs_as_one_of("position_ids", running_on, running_on_to_the_padding),
            "Positions run on through the whole window. A document's first token has position 0, wherever it stands: "
            "else the model learns that documents begin in the middle.",
        ),
        Hint(
            differs_as("position_ids", counted_padding),
            "The positions of the padding are counted as if it were a document. They are 0.",
        ),
        Hint(
            differs_as("labels", shifted_back),
            "The label of a token is the one after it, and yours is the one before it.",
        ),
        Hint(
            differs_as_one_of("labels", shifted_over_borders, shifted_into_padding, rolled),
            "At a boundary the label is the first token of the next document, which nothing in this one can predict. "
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
            differs_as_one_of("labels", by_ids, by_labels),
            "A 0 that is a token was taken for padding, so a label is missing. What is padding follows from the "
            "lengths of the documents: a tokenizer may have a token 0.",
        ),
        Hint(
            differs_as("input_ids", padded_with_ignored),
            "The padding of input_ids is -100, and an embedding has no row -100: it raises an error, on a GPU one that "
            "names another line. -100 is for the labels alone.",
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
