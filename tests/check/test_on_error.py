"""The hint on an exception or a deadlock: an oracle's own only where it says what happened, on every waiting rank."""

from __future__ import annotations

import pytest

from labkit.check.on_error import hint_on_error
from labkit.oracles.lab16.clip import CLIP
from labkit.oracles.lab16.zero1 import ZERO1
from labkit.oracles.lab17.compose_bugs import COMPOSE_BUGS
from labkit.oracles.lab17.tp_mlp import TP_MLP
from labkit.oracles.lab17.vocab_loss import VOCAB_LOSS
from labkit.oracles.lab18.naive_idle import NAIVE_IDLE
from labkit.oracles.lab18.pipeline_step import PIPELINE_STEP
from labkit.oracles.lab19.ring_attention import RING_ATTENTION
from labkit.spec import Oracle, Trouble

PLAIN = Oracle("99-plain")
SENDS = "rank 0 waits for rank 1 to receive, rank 1 waits for rank 0 to receive"
NO_MESSAGE = "rank 0 waits for a message from rank 1, rank 1 waits for a message from rank 2"
ALL_IN = "rank 0 waits in all_reduce for rank 1"


def hint(oracle: Oracle, text: str, where: str | None = "line 3: x") -> str:
    return hint_on_error(oracle, Trouble("raised", text, where)) or ""


def test_a_deadlock_of_sends_is_told_as_one_and_so_is_one_of_receives() -> None:
    for text in (SENDS, f"{SENDS}, rank 2 waits for rank 1 to receive, and 1 more waits"):
        assert "Two ranks wait for each other" in hint(PIPELINE_STEP, f"deadlock: {text}")
    assert "Either a message is missing, or a rank sends it" in hint(PIPELINE_STEP, f"deadlock: {NO_MESSAGE}")
    assert "Start both transfers" in hint(RING_ATTENTION, f"deadlock: {SENDS}, and 2 more wait")
    assert "Start both transfers" in hint(RING_ATTENTION, f"deadlock: {NO_MESSAGE}")


@pytest.mark.parametrize("oracle", [PIPELINE_STEP, RING_ATTENTION])
def test_what_holds_for_one_of_the_waiting_ranks_explains_no_deadlock(oracle: Oracle) -> None:
    mixed = f"deadlock: {SENDS}, rank 2 waits in all_reduce of the group of ranks 0, 2 for rank 0"
    assert "Either a message is missing" in hint(oracle, mixed)
    ended = "deadlock: rank 0 waits for rank 1 to receive, which has finished"
    assert "A rank that has finished" in hint(oracle, ended)
    assert "every collective and every barrier" in hint(oracle, f"deadlock: {ALL_IN}, which has finished")


def test_a_refused_call_is_no_deadlock() -> None:
    assert "wait for each other" not in hint(PIPELINE_STEP, "rank 1 tries to receive a NoneType: it must be a tensor")
    assert "x.grad of a stage" in hint(PIPELINE_STEP, "rank 1 tries to send a NoneType: it must be a tensor")


def test_lengths_are_blamed_where_they_were_refused_alone() -> None:
    sizes = "rank 0 calls reduce_scatter_single with input (5,) and output (2,): input must be 3 times output"
    assert "take the output first" in hint(ZERO1, f"{sizes} in dimension 0, and of its dtype")
    for other in (
        "deadlock: rank 0 waits in reduce_scatter_single for rank 1",
        "rank 0 calls all_gather_single with a NoneType: it must be a tensor",
        "collective number 2: rank 0 calls reduce_scatter_single, rank 1 calls all_gather_single",
    ):
        assert "take the output first" not in hint(ZERO1, other)


def test_ranks_that_call_different_collectives_are_told_so_in_every_exercise() -> None:
    text = "collective number 2: rank 0 calls all_reduce, rank 1 calls barrier"
    assert "every collective and every barrier" in hint(PLAIN, text)
    assert hint(CLIP, "rank 0 calls all_reduce with a float: it must be a tensor") == ""


@pytest.mark.parametrize(
    ("oracle", "text", "part"),
    [
        (TP_MLP, "rank 0: AttributeError: 'ParallelMLP' object has no attribute 'w_in'", "under the names w_in"),
        (COMPOSE_BUGS, "ValueError: too many values to unpack (expected 2)", "blame returns a pair"),
        (NAIVE_IDLE, "TypeError: 'float' object is not iterable", "returns a list"),
    ],
)
def test_what_is_returned_is_blamed_only_where_no_line_of_the_answer_raised(oracle: Oracle, text: str, part: str):
    """A forgotten `self.comm = comm` is no missing parameter, and a pair can be unpacked in the answer as well."""
    assert part in hint(oracle, text, where=None)
    assert hint(oracle, text) == ""


def test_an_index_into_a_list_is_no_target() -> None:
    assert "number in the whole vocabulary" in hint(VOCAB_LOSS, "IndexError: index 8 is out of bounds for dimension 1")
    assert "vocabulary" not in hint(VOCAB_LOSS, "IndexError: list index out of range")
