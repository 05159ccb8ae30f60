"""A place that no kernel stored to is told from NaN that a kernel computed."""

from __future__ import annotations

import pytest
import torch

from labkit.check.judge import judge
from labkit.meters.traffic.budget import measure_traffic
from labkit.spec import Case, Exercise, Hint, Observation, Oracle
from labkit.unwritten import unwritten

EXERCISE = Exercise("90-kernel", "", 1, 1, 1, answers=(), public=(), inputs=lambda case, gen: {}, drive=lambda *_: {})
RIGHT = torch.arange(12.0).reshape(3, 4)


def rows_and_hint(out: torch.Tensor, measured: dict[str, float], *hints: Hint) -> tuple[dict[str, str], str | None]:
    oracle = Oracle("90-kernel", expect=lambda run: {"out": RIGHT.to(out.dtype)}, diagnose=hints)
    verdict = judge(EXERCISE, oracle, [Observation(Case(), {}, {"out": out}, measured=measured)])
    return dict(verdict.rows), verdict.hint


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_new_memory_is_told_from_computed_nan(dtype: torch.dtype) -> None:
    with measure_traffic({}):
        new = torch.empty(4, 6, dtype=dtype)
        others = [torch.empty_like(new.t()), new.new_empty(3), torch.empty_strided((2, 2), (1, 2), dtype=dtype)]
    assert all(unwritten(one).all() for one in (new, *others))
    zeros = torch.zeros(3, dtype=dtype)
    infinite = torch.full((3,), torch.inf, dtype=dtype)
    computed = (
        zeros / zeros,
        infinite - infinite,
        torch.full((3,), torch.nan, dtype=dtype),
        (infinite - infinite).neg(),
    )
    assert not any(unwritten(one).any() for one in (*computed, zeros))
    # A sum over such memory rests on it, too.
    assert dtype in (torch.float16, torch.bfloat16) or unwritten(new.sum(0)).all()


def test_integers_cannot_be_told_apart() -> None:
    assert not unwritten(torch.full((3,), -1)).any()


def test_a_meter_leaves_what_is_filled_as_it_is() -> None:
    with measure_traffic({}) as traffic:
        assert torch.equal(torch.zeros(3), torch.tensor([0.0, 0.0, 0.0])) and torch.empty(3).isnan().all()
    assert not any(one.name.startswith("empty") or one.name == "fill_" for one in traffic.operations)


def test_a_student_reads_how_much_was_never_stored() -> None:
    with measure_traffic({}):
        out = torch.empty(3, 4)
    out[:2] = RIGHT[:2]
    rows, hint = rows_and_hint(out, {"store_bytes": 32})
    assert rows["note"] == "4 of 12 values rest on memory that no kernel stored to"
    assert hint.startswith("Not every place was stored to")
    _, hint = rows_and_hint(
        out, {"store_bytes": 32}, Hint(lambda run: unwritten(run.got["out"])[2].all(), "the last row")
    )
    assert hint == "the last row"


def test_of_computed_nan_and_outside_of_kernels_nothing_of_the_kind_is_said() -> None:
    rows, hint = rows_and_hint(torch.full((3, 4), torch.nan), {"store_bytes": 32})
    assert "note" not in rows and hint.startswith("NaN where a number belongs")
    with measure_traffic({}):
        out = torch.empty(3, 4)
    rows, hint = rows_and_hint(out, {})
    assert "note" not in rows and hint.startswith("NaN where a number belongs")
