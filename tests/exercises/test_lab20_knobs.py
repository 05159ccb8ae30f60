"""Lab 20: the script with knobs is one that the game accepts, and an interaction is never near its border."""

from __future__ import annotations

from itertools import combinations
from random import Random

import pytest
import torch

from labkit.capstone import read
from labkit.exercises.lab20.ablation import SHARE, Knobs, a_script, draw_table, extras, tells
from labkit.material.lab20_knobs import KNOBS, UnknownKnob, script_with

pytestmark = pytest.mark.lab("20")


@pytest.mark.parametrize("machine", ["basement", "v100", "quad"])
def test_every_pair_of_knobs_makes_a_script_of_the_game(machine: str) -> None:
    for turned in [(), *combinations(KNOBS, 1), *combinations(KNOBS, 2)]:
        if set(turned) != {"in backward", "micro"}:
            script = read(script_with(turned, machine))
            assert (script.machine, script.changed) == (machine, ", ".join(turned) or "nothing")


def test_a_knob_that_there_is_not_is_named_and_two_that_exclude_each_other_are() -> None:
    with pytest.raises(UnknownKnob, match="no knob is called offload"):
        script_with(["offload"])
    with pytest.raises(ValueError, match="exclude each other"):
        script_with(["in backward", "micro"])


@pytest.mark.parametrize("n", [2, 3, 4, 6])
def test_a_drawn_script_has_no_interaction_near_the_border(n: int) -> None:

    names = tuple(KNOBS)[:n]
    table = a_script(Knobs(names), torch.Generator().manual_seed(n))["table"]
    shares = [abs(extra) / table[""] / SHARE for extra in extras(table, names)]
    assert not [share for share in shares if 0.7 < share < 1.4]
    assert len(table) == 2**n
    if n >= 4:
        assert min(shares) < 1 < max(shares)


def test_most_drawn_scripts_are_sorted_out() -> None:
    """The control: without `tells` there would be some near the border."""
    rng, names = Random(0), tuple(KNOBS)[:5]
    assert not all(tells(draw_table(names, rng), names) for _ in range(50))
