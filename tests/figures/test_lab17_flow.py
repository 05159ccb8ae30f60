"""Lab 17's figure of the student's own MLP: nothing is red where it is right, and a mistake shows where it spoils."""

from __future__ import annotations

import pytest
import torch

from labkit import figures
from labkit.figures.canvas import OTHER
from labkit.figures.mlp_flow import RIGHT
from labkit.material.lab17_flow import NEITHER, NOTHING, MlpFlow, flow_of_mlp
from tests.exercises.harness import answers_in, solution_of

pytestmark = pytest.mark.lab("17")


def flow(*changes: tuple[str, str]) -> MlpFlow:
    """Of lab 17's solution with these texts replaced by others."""
    source = solution_of("17-tp-mlp")
    for old, new in changes:
        assert source.count(old) == 1
        source = source.replace(old, new)
    return flow_of_mlp(answers_in("17-tp-mlp", source)["ParallelMLP"])


def off(run: MlpFlow) -> dict[str, str]:
    """The words that are not the right ones; a gradient's behind "d "."""
    named = {**run.forward, **{f"d {name}": word for name, word in run.backward.items()}}
    return {name: word.name for name, word in named.items() if word.name != RIGHT[name.removeprefix("d ")]}


def in_red(run: MlpFlow) -> list[str]:
    return [text.get_text() for text in figures.mlp_flow(run).axes[0].texts if text.get_color() == OTHER]


def test_nothing_is_red_where_nothing_is_wrong() -> None:
    run = flow()
    assert off(run) == {} and in_red(run) == []
    assert run.forward["w_in"].along == "tokens" and run.forward["w_out"].along == "columns"
    for mine, wanted in zip(run.ranks, run.reference, strict=True):
        for name, grad in wanted.items():
            torch.testing.assert_close(mine[name], grad, atol=1e-4, rtol=1e-4)
    figure = figures.mlp_flow(run)
    assert "given to all-reduce: partial, gradient partial; b_out: replicated" in figure.alt
    assert figures.gradient_ratios(run.reference, run.ranks).alt.endswith("none")


def test_a_missing_sum_of_the_gradient_of_x_leaves_it_partial() -> None:
    run = flow(("EnterRanks.apply(x, self.comm)", "x"))
    assert off(run) == {"d x": "partial", "d given to all-reduce": NOTHING.name}
    assert in_red(run) == ["partial", NOTHING.name]


def test_an_all_reduce_of_autograd_multiplies_the_gradients_behind_it_by_the_ranks() -> None:
    run = flow(
        ("return grad, None", "total = grad.clone(); self_comm(ctx).all_reduce(total); return total, None"),
        ("        total = part.clone()", "        ctx.comm = comm\n        total = part.clone()"),
        ("class LeaveRanks", "def self_comm(ctx):\n    return ctx.comm\n\n\nclass LeaveRanks"),
    )
    wrong = {"d x", "d w_in", "d b_in", "d w_out", "d given to all-reduce"}
    assert off(run) == dict.fromkeys(wrong, NEITHER.name)
    told = figures.gradient_ratios(run.reference, run.ranks).alt
    assert told.endswith(": x 4; w_in 4; b_in 4; w_out 4")


def test_a_bias_on_every_rank_spoils_the_output_and_no_forward_sum_leaves_it_partial() -> None:
    late, early = " self.comm) + self.b_out", "F.linear(hidden, self.w_out),"
    biased = flow((late, " self.comm)"), (early, "F.linear(hidden, self.w_out, self.b_out),"))
    assert off(biased) == {"given to all-reduce": NEITHER.name, "y": NEITHER.name}
    assert off(flow(("LeaveRanks.apply(F.linear(hidden, self.w_out), self.comm)", "F.linear(hidden, self.w_out)"))) == {
        "given to all-reduce": NOTHING.name,
        "y": NEITHER.name,
    }


def test_whole_weights_and_a_parameter_without_a_gradient_are_told() -> None:
    whole = flow(
        ("self.w_in, self.b_in, self.w_out = part(w_in, 0),", "self.w_in, self.b_in, self.w_out = nn.Parameter(w_in),"),
        ("self.w_in, self.b_in))", "self.w_in.tensor_split(self.comm.world_size)[self.comm.rank], self.b_in))"),
    )
    assert off(whole) == {"w_in": "replicated", "d w_in": "partial"}
    assert off(flow(("nn.Parameter(b_out.clone())", "b_out.clone()"))) == {"d b_out": NOTHING.name}
