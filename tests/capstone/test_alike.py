"""What a step works on grows with the model: what does, what does not, and tables that are as large at every size."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
import torch

from labkit.capstone import BILLION, TINY, Bill, Size
from labkit.capstone.alike import MOST_OF_ONE_SIZE, check_growth, check_sizes, check_step
from labkit.capstone.broken import RuleBroken
from labkit.capstone.size import between

MIDDLE = between(random.Random(3))


def a_bill(size: Size, *shapes: tuple[int, ...], dtype: torch.dtype = torch.float32) -> Bill:
    """Of a step with one operation for each shape."""
    operations = tuple(("mul", [(torch.Size(shape), dtype, False)]) for shape in shapes)
    nothing = {"setup_s": 0.0, "step_s": 1.0, "peak_bytes": {}, "flops": {}}
    return Bill("basement", size, **nothing, sequences=2, n_bytes=0, host_bytes=0, link_bytes=0, operations=operations)


def bills(shape) -> list[Bill]:
    return [a_bill(size, shape(size)) for size in (TINY, MIDDLE, BILLION)]


GROWS = {
    "a weight": lambda s: (4 * s.width, s.width),
    "half of one": lambda s: (2 * s.width, s.width),
    "scores": lambda s: (3, s.n_heads, s.seq_len, s.seq_len),
    "logits of a chunk": lambda s: (s.seq_len // 8, s.vocab),
    "a third of the tokens": lambda s: (-(-s.seq_len // 3), s.width),
    "all weights in one": lambda s: (s.n_parameters,),
    "some weights in one": lambda s: ((s.vocab + s.seq_len) * s.width + 2 * s.width + 3 * s.width**2,),
    "scales of blocks": lambda s: (s.width**2 // 256, 1),
    "one number": lambda s: (),
    "a table": lambda s: (256,),
}
DOES_NOT = {
    "a corner": lambda s: (min(s.width, 128), min(s.width, 128)),
    "a large corner": lambda s: (min(s.width, 2000), s.width),
    "the first tokens": lambda s: (min(s.seq_len, 256), s.width),
    "a part of one memory": lambda s: (min(s.n_parameters, 10_000_000),),
    "fewer heads": lambda s: (2, 1 if s.width > 4000 else s.n_heads, s.seq_len, s.seq_len),
}


@pytest.mark.parametrize("what", GROWS)
def test_what_is_in_proportion_to_the_model_grows(what: str) -> None:
    check_growth(*bills(GROWS[what]))


@pytest.mark.parametrize("what", DOES_NOT)
def test_what_is_cut_off_at_a_number_is_found(what: str) -> None:
    with pytest.raises(RuleBroken, match="not as the model grows") as broken:
        check_growth(*bills(DOES_NOT[what]))
    assert broken.value.kind == "size"


def test_many_tensors_of_one_size_are_too_many() -> None:
    """All of the tiny model could be worked on in pieces of 256 numbers, and hardly anything of the billion."""
    few, many = MOST_OF_ONE_SIZE // 256, MOST_OF_ONE_SIZE // 256 + 1
    check_growth(*(a_bill(size, *[(256,)] * few) for size in (TINY, MIDDLE, BILLION)))
    with pytest.raises(RuleBroken, match="no larger in a larger model"):
        check_growth(*(a_bill(size, *[(256,)] * many) for size in (TINY, MIDDLE, BILLION)))


def test_another_dtype_at_another_size_and_other_sequences_are_found() -> None:
    full = a_bill(BILLION, (2, 2))
    check_sizes(full, a_bill(TINY, (1, 1)), "at the tiny size")
    with pytest.raises(RuleBroken, match="mul of float32 in the billion, and mul of int8 at the tiny size"):
        check_sizes(full, a_bill(TINY, (1, 1), dtype=torch.int8), "at the tiny size")
    with pytest.raises(RuleBroken, match="2 sequences in the billion and 9 on card 3"):
        check_sizes(full, replace(full, sequences=9), "on card 3")


def test_setup_the_first_step_and_every_other_are_held_to_their_own_part_of_the_bill() -> None:
    one, two, three = (list(a_bill(TINY, (n,)).operations) for n in (1, 2, 3))
    small = replace(a_bill(TINY, (3,)), prepared=tuple(one), first=tuple(two))
    for number, operations in ((None, one), (0, two), (1, three), (399, three)):
        check_step(number, 2, operations, small, 1)
    for number, operations, where in (
        (None, two, "when training is set up"),
        (0, three, "in step 0 of training"),
        (7, two, "in step 7 of training"),
    ):
        with pytest.raises(RuleBroken, match=where):
            check_step(number, 2, operations, small, 1)
    with pytest.raises(RuleBroken, match="step 7 of training takes 12 sequences; 8 are billed for each"):
        check_step(7, 3, three, small, 4)


def test_memory_that_is_shared_at_one_size_alone_is_found() -> None:
    apart, shared = ((0,), (1,)), ((0,), (0,))
    full = replace(a_bill(BILLION, (4,), (4,)), worked_on=((), (), shared))
    check_sizes(full, replace(a_bill(TINY, (1,), (1,)), worked_on=((), (), shared)), "at the tiny size")
    with pytest.raises(RuleBroken, match="operation 2, mul, works on other tensors' memory in the billion") as broken:
        check_sizes(full, replace(a_bill(TINY, (1,), (1,)), worked_on=((), (), apart)), "at the tiny size")
    assert broken.value.kind == "size"


def test_one_row_that_stands_for_all_is_found_at_another_size_and_in_another_step() -> None:
    whole = a_bill(TINY, (4, 4))
    repeated = replace(whole, operations=(("mul", [(torch.Size((4, 4)), torch.float32, True)]),))
    with pytest.raises(RuleBroken, match=r"mul of float32 \(expanded\) in the billion, and mul of float32 at the"):
        check_sizes(repeated, whole, "at the tiny size")
    with pytest.raises(RuleBroken, match=r"mul of 4×4 \(expanded\) in the bill, and mul of 4×4 in step 3") as broken:
        check_step(3, 2, list(whole.operations), repeated, 1)
    assert broken.value.kind == "data"


def test_a_step_with_another_dtype_is_told_apart() -> None:
    wide, narrow = a_bill(TINY, (4, 4)), a_bill(TINY, (4, 4), dtype=torch.bfloat16)
    with pytest.raises(RuleBroken, match="mul of float32 in the bill, and mul of bfloat16 in step 3"):
        check_step(3, 2, list(narrow.operations), wide, 1)
