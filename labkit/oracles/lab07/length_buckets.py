"""Lab 07: what goes wrong where texts are batched by length."""

from __future__ import annotations

from collections.abc import Callable

import torch

from labkit.exercises.lab07.length_buckets import Texts
from labkit.oracles.lab07.text_batches import (
    IGNORED,
    collated,
    each_once,
    goes_on,
    is_small,
    likeness,
    little_padding,
    meet_again,
    one_later,
    padding,
    random_order,
    rest,
    starts_over,
    steepness,
    true_batch,
)
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Oracle


def drops_tail(run: CaseRun[Texts]) -> object:
    """What is missing is less than a batch. CANNOT_TELL where the batches divide the texts."""
    case = run.case
    if case.n % case.batch_size == 0:
        return CANNOT_TELL
    return all(case.n - sum(map(len, epoch)) == case.n % case.batch_size for epoch in run.got["epochs"])


def of_enough_batches(when: Callable[[CaseRun[Texts]], object]) -> Callable[[CaseRun[Texts]], object]:
    """A diagnosis of the order, which a case with few batches says nothing about."""
    return lambda run: CANNOT_TELL if is_small(run) and each_once(run) is None else when(run)


def as_padding(name: str, value: int) -> Callable[[CaseRun[Texts]], object]:
    """A diagnosis: where there is padding, this tensor has this value. CANNOT_TELL of a batch without padding."""

    def when(run: CaseRun[Texts]) -> object:
        right = true_batch(run)
        wrong = torch.where(right["attention_mask"] == 0, value, right[name])
        return CANNOT_TELL if torch.equal(wrong, right[name]) else torch.equal(run.got["collated"][name], wrong)

    return when


def by_zeros(name: str, value: int) -> Callable[[CaseRun[Texts]], bool]:
    """A diagnosis: this tensor has this value wherever input_ids is 0, at tokens, too."""

    def when(run: CaseRun[Texts]) -> bool:
        right = true_batch(run)
        wrong, found = torch.where(right["input_ids"] == 0, value, right[name]), run.got["collated"][name]
        return found.shape == wrong.shape and bool((found == wrong).all())

    return when


def shifted_labels(run: CaseRun[Texts]) -> bool:
    """Each token's label is the token that follows it."""
    right, found = true_batch(run)["labels"], run.got["collated"]["labels"]
    return found.shape == right.shape and torch.equal(found[:, :-1], right[:, 1:])


LENGTH_BUCKETS = Oracle(
    id="07-length-buckets",
    judge=(each_once, little_padding, random_order, goes_on, starts_over, collated),
    diagnose=(
        Hint(
            drops_tail,
            "The last texts are dropped, because they do not fill a batch. Keep them in a batch that is smaller.",
        ),
        Hint(
            lambda run: run.case.n_done > 0 and run.got["n_batches"] - run.case.n_done == run.got["n_batches_loaded"],
            "After load_state_dict, len() is what is left of the epoch, and every later epoch has more than that. "
            "It is the number of batches of a whole epoch, whatever place was loaded.",
        ),
        Hint(
            of_enough_batches(lambda run: each_once(run) is None and steepness(run) > 0.5),
            "The batches come in the order of their length, so the model sees short texts first and long ones last. "
            "Shuffle the list of batches once they are cut.",
        ),
        Hint(
            of_enough_batches(lambda run: each_once(run) is None and likeness(run) > 0.5),
            "Within each pool the batches come in the order of their length, so for a while the model sees only short "
            "texts, and then only long ones. Shuffle the list of all batches once they are cut.",
        ),
        Hint(
            of_enough_batches(lambda run: each_once(run) is None and padding(run) > 0.5),
            "The texts in a batch have all kinds of lengths. Sort before the batches are cut, and shuffle whole "
            "batches afterwards.",
        ),
        Hint(
            of_enough_batches(lambda run: little_padding(run) is not None),
            "A pool has too few texts to choose from. Sort some 50 batches' worth of texts at a time.",
        ),
        Hint(
            of_enough_batches(lambda run: run.got["epochs"][0] == run.got["epochs"][1]),
            "Every epoch is the same. Seed the generator with a number from the seed and from the epoch.",
        ),
        Hint(
            of_enough_batches(meet_again),
            "The same texts meet in every epoch: sorted by length as a whole, a text always has the same neighbours. "
            "Shuffle all texts first, cut them into pools, and sort within each pool.",
        ),
        Hint(
            of_enough_batches(lambda run: run.got["other"] == run.got["epochs"][-1]),
            "The seed changes nothing. Seed the generator with a number from the seed and from the epoch.",
        ),
        Hint(
            lambda run: (
                CANNOT_TELL
                if run.got["again"] == run.got["epochs"][-1]
                else each_once(run) is None and little_padding(run) is None
            ),
            "The order depends on what was drawn before. A new generator for each epoch, seeded from seed and epoch, "
            "makes any epoch again, in any process.",
        ),
        Hint(
            lambda run: (
                CANNOT_TELL
                if run.got["elsewhere"] == run.got["epochs"][-1]
                else run.got["again"] == run.got["epochs"][-1]
            ),
            "hash() of a text is another number in every process, so a run that is resumed shuffles differently. Make "
            "the seed of whole numbers.",
        ),
        Hint(
            lambda run: (
                CANNOT_TELL
                if goes_on(run) is None or run.case.n_done == 0
                else run.got["resumed"] == run.got["epochs"][1]
            ),
            "The epoch begins again. The state has to hold how many batches were yielded, and the next iteration skips "
            "that many.",
        ),
        Hint(
            lambda run: (
                CANNOT_TELL
                if goes_on(run) is None
                else run.case.n_done > 0 and run.got["resumed"] == run.got["epochs"][1][run.case.n_done - 1 :]
            ),
            "One batch comes twice: it had been yielded, and was not counted yet when the state was taken. Code after"
            " a yield runs only when the next batch is asked for.",
        ),
        Hint(
            lambda run: (
                CANNOT_TELL
                if goes_on(run) is None
                else bool(run.got["resumed"]) and run.got["resumed"] == run.got["epochs"][0][run.case.n_done :]
            ),
            "It goes on at the right place of another epoch. The epoch belongs to the state, too.",
        ),
        Hint(
            lambda run: (
                CANNOT_TELL if goes_on(run) is None else run.got["resumed"] == one_later(run, run.got["epochs"][1])
            ),
            "The state changed after it was taken, because the sampler goes on writing into the dictionary that it has "
            "returned. Return a new one each time.",
        ),
        Hint(
            lambda run: (
                CANNOT_TELL
                if goes_on(run) is None
                else run.got["resumed"] == rest(run, run.case.n_done)
                and run.got["resumed_twice"] == rest(run, run.case.n_more)
            ),
            "After a second interruption batches come again: after load_state_dict the count began at 0. It has to go "
            "on from the number in the state.",
        ),
        Hint(
            lambda run: (
                CANNOT_TELL
                if goes_on(run) is None or run.case.n_done == 0
                else run.got["resumed"] == rest(run, run.case.n_done)
                and run.got["resumed_at_once"] == run.got["epochs"][1]
            ),
            "A run that is killed again before its first batch begins the epoch again: right after load_state_dict, "
            "state_dict still says that nothing was yielded. load_state_dict has to set that number, too.",
        ),
        Hint(
            lambda run: CANNOT_TELL if run.got["repeated"] == run.got["epochs"][-1] else run.got["repeated"] == [],
            "A second iteration yields nothing: the count of batches has to go back to 0 where an iteration begins.",
        ),
        Hint(
            lambda run: (
                CANNOT_TELL
                if starts_over(run) is None
                else run.got["left"] == one_later(run, run.got["epochs"][1]) != run.got["epochs"][1]
            ),
            "An iteration goes on where the one before it was left, so a look at next(iter(loader)) takes a batch out "
            "of the epoch, and nobody notices. Only the iteration right after load_state_dict goes on from a saved "
            "place: keep that place in an attribute of its own, and set it back to 0 where an iteration begins there.",
        ),
        Hint(
            lambda run: (
                CANNOT_TELL
                if starts_over(run) is None
                else run.case.n_done > 0 and run.got["reset_loaded"] == run.got["epochs"][-1][run.case.n_done :]
            ),
            "set_epoch begins a whole epoch, so it sets the place that load_state_dict has saved back to 0.",
        ),
        Hint(
            lambda run: (
                CANNOT_TELL
                if starts_over(run) is None
                else run.case.n_done > 0 and run.got["resumed_again"] == rest(run, run.case.n_done)
            ),
            "After load_state_dict every iteration yields the rest of the epoch, and the batches before it never come "
            "again. The saved place counts for one iteration: set it back to 0 where that begins.",
        ),
        Hint(
            lambda run: run.got["over"] == run.got["epochs"][1] and run.got["resumed"] == rest(run, run.case.n_done),
            "After its last batch the state says that the epoch has not begun, so a run that is saved there and loaded "
            "again trains on the whole epoch a second time. Leave the count as it is when the epoch ends, and begin "
            "at 0 where the next iteration begins.",
        ),
        Hint(
            lambda run: bool(run.got["changed"]) and each_once(run) is None and little_padding(run) is None,
            "The order comes from a global generator, from which other code draws as well: dropout from torch's, "
            "augmentations from Python's or NumPy's. Use a generator of the sampler's own.",
        ),
        Hint(
            by_zeros("attention_mask", 0),
            "The mask is 0 at tokens whose number is 0. Which places are padding follows from the lengths of the "
            "texts: a tokenizer may have a token 0.",
        ),
        Hint(
            by_zeros("labels", IGNORED),
            "Tokens whose number is 0 have lost their label. Which places are padding follows from the lengths of the "
            "texts: a tokenizer may have a token 0.",
        ),
        Hint(
            shifted_labels,
            "The labels are shifted by one. Models of transformers do that themselves, so the labels are the tokens.",
        ),
        Hint(
            as_padding("input_ids", IGNORED),
            "The padding of input_ids is -100, and an embedding has no row -100: it raises an error, on a GPU one that "
            "names another line. -100 is for the labels alone.",
        ),
        Hint(
            as_padding("labels", 0),
            "The padding has labels, so the loss asks the model to predict padding. Its label is -100.",
        ),
        Hint(
            as_padding("attention_mask", 1),
            "The mask is 1 everywhere, so the tokens attend to the padding. It is 0 there.",
        ),
        Hint(
            lambda run: run.got["collated"]["input_ids"].shape[1] > true_batch(run)["input_ids"].shape[1],
            "The texts are padded beyond the longest text of this batch. A width that is fixed, or that comes from all "
            "texts, is filled with padding nearly everywhere.",
        ),
    ),
    call=lambda run: f"LengthBatches(<{run.case.n:,} lengths>, batch_size={run.case.batch_size}, seed={run.case.seed})",
    axis="other numbers of texts, batch sizes, seeds and places to go on from",
)
