"""Lab 01: whether a batch fits a card and one more sequence does not, measured on a real training step."""

from __future__ import annotations

from collections.abc import Callable

from labkit.compare import inputs_untouched
from labkit.exercises.lab01.largest_batch import Card
from labkit.exercises.lab01.llama import moments
from labkit.oracles.calls import as_call
from labkit.spec import CaseRun, Hint, Oracle


def peak_bytes(case: Card, batch_size: int) -> int:
    """The measured peak of a step with this batch."""
    return moments(case.shape(), batch_size, case.seq_len).peak


def most_that_could_fit(case: Card, needs: dict[str, int]) -> int:
    """A bound that needs no measurement: the card holds nothing but one batch's activations."""
    return case.card_bytes // max(needs["activations_per_sequence"], 1)


def whole(found: object) -> object:
    """A float without a fraction as its int, since `//` of floats is one; anything else as it is."""
    return int(found) if isinstance(found, float) and found.is_integer() else found


def fits(run: CaseRun) -> str | None:
    """The measured step of the batch stays within the card, and that of one sequence more does not."""
    found, case = whole(run.got["out"]), run.case
    if isinstance(found, bool) or not isinstance(found, int) or found < 0:
        return f"a number of sequences is a whole number from 0 on, not {found!r}"[:90]
    if found > most_that_could_fit(case, run.tree["needs"]):
        return f"a batch of {found:,} does not fit: its activations alone exceed the card's {case.card_bytes:,} bytes"
    if found and (peak := peak_bytes(case, found)) > case.card_bytes:
        return f"a batch of {found} does not fit: the step's peak is {peak:,} bytes, the card has {case.card_bytes:,}"
    if (peak := peak_bytes(case, found + 1)) <= case.card_bytes:
        return f"a batch of {found + 1} fits as well: its peak is {peak:,} bytes, the card has {case.card_bytes:,}"
    return None


def needs_untouched(run: CaseRun) -> str | None:
    """The dict of needs is the caller's."""
    return inputs_untouched(run)


needs_untouched.hint = "`needs` belongs to the caller, who goes on using it: read from it, and take nothing out."


STATES = ("weights", "optimizer")


class Packed:
    """The needs of a step, and what came back for the batch."""

    def __init__(self, run: CaseRun[Card]) -> None:
        self.needs, self.card, self.found = run.tree["needs"], run.case.card_bytes, whole(run.got["out"])
        self.states = self.needs["weights"] + self.needs["optimizer"]
        self.per_sequence = self.needs["activations_per_sequence"] + self.needs["loss_per_sequence"]
        self.at_update = self.states + self.needs["gradients"] + self.needs["update"]

    def is_whole(self) -> bool:
        return isinstance(self.found, int) and not isinstance(self.found, bool) and self.found >= 0

    @property
    def without_update(self) -> int:
        """The largest batch by the first moment alone."""
        return max((self.card - self.states) // self.per_sequence, 0)

    def holds(self, *taken: str, per_sequence: int | None = None) -> bool:
        """Whether the batch is what is left beside these parts, divided by this much a sequence."""
        left = self.card - sum(self.needs[name] for name in taken)
        return self.found == max(left // (per_sequence or self.per_sequence), 0)


def packed(when: Callable[[Packed], object]) -> Callable[[CaseRun[Card]], object]:
    """A diagnosis of 01-largest-batch."""
    return lambda run: when(run.memo(Packed))


LARGEST_BATCH = Oracle(
    id="01-largest-batch",
    judge=(fits, needs_untouched),
    call=lambda run: as_call("largest_batch", run.tree["needs"], run.case.card_bytes),
    diagnose=(
        Hint(
            packed(lambda p: isinstance(p.found, float) or (p.is_whole() is False and isinstance(p.found, int))),
            "Return an int that is 0 or more: use // to divide, and 0 where not even one sequence fits.",
        ),
        Hint(
            packed(lambda p: p.at_update > p.card and p.found > 0),
            "The step of the optimizer does not fit this card with any batch: weights, gradients, states and the "
            "temporary tensors of the update are alive together then, so the answer is 0.",
        ),
        Hint(
            packed(lambda p: p.at_update == p.card and p.found == 0),
            "This card is as large as the optimizer's step needs, to the byte, and so the step fits: return 0 only "
            "where it needs more.",
        ),
        Hint(
            packed(lambda p: p.at_update <= p.card and p.without_update == 0 and p.found > 0),
            "Not even one sequence fits this card beside the states: the answer is 0.",
        ),
        Hint(
            packed(lambda p: p.found > p.without_update and (p.holds() or p.holds("optimizer"))),
            "The model's states are missing: weights and optimizer states are on the card before the first sequence.",
        ),
        Hint(
            packed(lambda p: p.found > p.without_update and p.holds("weights")),
            "The optimizer's states are missing: from the second step on they are there during the forward pass, too.",
        ),
        Hint(
            packed(
                lambda p: (
                    p.found > p.without_update and p.holds(*STATES, per_sequence=p.needs["activations_per_sequence"])
                )
            ),
            "The loss is missing: when the backward pass begins, the gradient of the logits is alive beside everything "
            "that the forward pass kept.",
        ),
        Hint(
            packed(
                lambda p: p.found > p.without_update and p.holds(*STATES, per_sequence=p.needs["loss_per_sequence"])
            ),
            "The activations are missing: everything that the forward pass kept is alive beside the gradient of the "
            "logits.",
        ),
        Hint(
            packed(
                lambda p: (
                    p.found > p.without_update
                    and p.holds("loss_per_sequence", *STATES, per_sequence=p.needs["activations_per_sequence"])
                )
            ),
            "The loss is counted for one sequence alone: every sequence of the batch has its own logits and their "
            "gradients.",
        ),
        Hint(
            packed(lambda p: p.found == p.without_update + 1),
            "Off by one: the batch must fit whole, so round down.",
        ),
        Hint(
            packed(
                lambda p: (
                    p.found < p.without_update
                    and (
                        p.holds("weights", "optimizer", "gradients")
                        or p.holds("weights", "optimizer", "gradients", "update")
                    )
                )
            ),
            "Too careful: gradients and activations do not have their peaks together. When the backward pass begins, "
            "there are no gradients yet; when the optimizer steps, the activations are gone.",
        ),
        Hint(
            packed(lambda p: p.found < p.without_update and p.holds("weights", "optimizer", "update")),
            "Too careful: the temporary tensors of the update come when the activations are gone, so they take nothing "
            "from the batch.",
        ),
        Hint(
            packed(
                lambda p: (
                    p.found < p.without_update and p.holds(*STATES, per_sequence=p.per_sequence + p.needs["update"])
                )
            ),
            "The temporary tensors of the update are counted for every sequence: they come once, when the optimizer "
            "steps, however large the batch is.",
        ),
        Hint(
            packed(lambda p: p.found == p.without_update - 1),
            "Off by one: one sequence more still fits.",
        ),
        Hint(
            packed(lambda p: p.found > p.without_update),
            "Write down what is alive when the backward pass begins and when the optimizer steps: both must fit.",
        ),
    ),
)
