"""Lab 13, softmax in one pass: what the text says in figures, what the inputs hold, and a judge that nothing upsets."""

from __future__ import annotations

import pytest
import torch

from labkit.check.judge import judge
from labkit.exercises import find
from labkit.exercises.lab13.online_softmax import Blocks, one_by_one, rows
from labkit.observe import make_inputs
from labkit.oracles import oracle_of
from labkit.oracles.lab13.online_softmax import expected
from labkit.spec import CaseRun, Observation
from tests.exercises.harness import answers_in, solution_of

INF = float("inf")


@pytest.fixture(scope="module")
def answers():
    pytest.importorskip("triton", reason="Triton is not installed; the lab's set-up imports it")
    return answers_in("13-online-softmax", solution_of("13-online-softmax"))


def test_the_three_blocks_of_the_prediction(answers) -> None:
    blocks = [torch.tensor([pair]) for pair in ([1.0, 2.0], [5.0, 0.0], [3.0, 3.0])]
    found = [answers["softmax_stats"](iter(blocks[:n])) for n in (1, 2, 3)]
    assert [(top.item(), round(total.item(), 1)) for top, total in found] == [(2.0, 1.4), (5.0, 1.1), (5.0, 1.3)]


def test_top_and_log_of_total_are_logsumexp(answers) -> None:
    x = 3 * torch.randn(4, 1000, generator=torch.Generator().manual_seed(0))
    top, total = answers["softmax_stats"](iter(x.split(128, dim=1)))
    torch.testing.assert_close(top + total.log(), torch.logsumexp(x, 1))


def test_merging_is_associative_and_nothing_is_neutral(answers) -> None:
    merge = answers["merge_stats"]
    x = torch.randn(5, 30, generator=torch.Generator().manual_seed(0))
    a, b, c = (answers["softmax_stats"](iter([part])) for part in x.split(10, dim=1))
    for one, other in zip(merge(merge(a, b), c), merge(a, merge(b, c))):
        torch.testing.assert_close(one, other)
    nothing = torch.full((5,), -INF), torch.zeros(5)
    for one, other in zip(merge(a, nothing), a):
        assert torch.equal(one, other)


def test_every_kind_of_row_is_there() -> None:
    case = Blocks((8, 8, 8))
    x = rows(case, torch.Generator().manual_seed(0))
    assert x[1].argmax() >= 16 and x[2].argmax() < 8
    assert x[3].max() < 0 and x[4].min() > 88
    assert (x[5, :8] == -INF).all() and (x[5, 8:] > -INF).all()
    assert (x[6, 8:16] == -INF).all() and (x[6, :8] > -INF).all()
    assert (x[7] == -INF).all()


def test_blocks_are_copies_and_come_once() -> None:
    case = Blocks((2, 3))
    x = rows(case, torch.Generator().manual_seed(0))
    blocks = one_by_one(case, x)
    assert [block.data_ptr() == x.data_ptr() for block in blocks] == [False, False]
    assert list(blocks) == []


def test_a_block_that_is_changed_in_place_is_noticed_when_the_next_one_is_asked_for() -> None:
    blocks = one_by_one(Blocks((2, 3)), torch.ones(1, 5))
    next(blocks).exp()
    next(blocks).exp_()
    with pytest.raises(ValueError, match="changed in place"):
        next(blocks)


def test_nothing_seen_is_a_total_of_zero() -> None:
    exercise = find("13-online-softmax")
    tree = make_inputs(exercise, exercise.public[0], 1)
    right = expected(CaseRun(exercise.public[0], tree))
    assert (right["top"][7], right["total"][7]) == (-INF, 0)
    assert (right["merged_top"][5], right["merged_total"][5]) == (-INF, 0)
    assert not any(one.isnan().any() for one in right.values())


@pytest.mark.parametrize("odd", [None, "text", float("nan"), torch.zeros(2, 3, 4), torch.full((1,), float("nan"))])
def test_a_judge_survives_what_is_no_result(odd: object) -> None:
    exercise, oracle = find("13-online-softmax"), oracle_of("13-online-softmax")
    case = exercise.public[0]
    tree = make_inputs(exercise, case, 1)
    for got in (None, dict.fromkeys(("top", "total", "merged_top", "merged_total"), odd)):
        verdict = judge(exercise, oracle, [Observation(case, tree, got, tree)], n_cases=len(exercise.public))
        assert verdict.score == 0
