"""observe: how a run that goes wrong is told, in which words and at which line, and how one without end is stopped."""

from __future__ import annotations

import time

import pytest

from labkit.limits import OverLimit, time_limit
from labkit.spec import Run
from labkit.troubles import MAX_LINE, trouble_of
from tests.exercises.small import cell, examined, run


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (NotImplementedError(), "unanswered", "Write your answer here."),
        (NotImplementedError("another text"), "raised", "NotImplementedError: another text"),
        (MemoryError(), "memory", "it ran out of memory"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), "memory", "it ran out of memory"),
        (SystemExit(1), "raised", "SystemExit: 1"),
        (ValueError("first line\nsecond line"), "raised", "ValueError: first line"),
        (ValueError(), "raised", "ValueError"),
        (AttributeError("<Thing object at 0x7f00> has none"), "raised", "AttributeError: <Thing object> has none"),
    ],
)
def test_troubles(error: BaseException, kind: str, text: str) -> None:
    def fail(x):
        raise error

    trouble = run(fail).trouble
    assert (trouble.kind, trouble.text) == (kind, text)


def test_an_error_whose_text_cannot_be_read() -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def fail(x):
        raise Odd

    assert run(fail).trouble.text == "Odd: its message cannot be read"


def test_an_interrupt_is_the_student_s_own() -> None:
    def interrupted(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(interrupted)


def test_the_line_quoted_is_the_student_s_last_one() -> None:
    source = "def inner(x):\n    return torch.stack(x)\n\ndef double(x):\n    return inner(x)\n"
    seen = run(cell(source)["double"])
    assert seen.trouble.where == "line 2: return torch.stack(x)"


@pytest.mark.parametrize(("length", "shown"), [(MAX_LINE, "x" * MAX_LINE), (MAX_LINE + 1, "x" * (MAX_LINE - 1) + "…")])
def test_a_line_that_an_error_brings_along_says_that_it_goes_on(length: int, shown: str) -> None:
    error = ValueError("no")
    error.students_line = "x" * length
    assert trouble_of(error).where == shown


def test_there_is_no_line_where_only_our_code_ran() -> None:
    verdict = examined("double = lambda: 1", drive=lambda ans, case, tree, stage: 1 / 0)
    assert "labkit" not in str(verdict.rows)


def test_a_time_limit_stops_a_loop_in_python() -> None:
    start = time.perf_counter()
    seen = run(lambda x: [None for _ in iter(int, 1)], run=Run(wall_s=0.2))
    assert seen.trouble.kind == "wall"
    # Without the limit it never ends.
    assert time.perf_counter() - start < 60


def test_a_time_limit_on_cpu_time() -> None:
    seen = run(lambda x: [None for _ in iter(int, 1)], run=Run(wall_s=60, cpu_s=0.2))
    assert (seen.trouble.kind, seen.trouble.text) == ("cpu", "it did not finish within 0.2 s of cpu time")


def test_an_answer_cannot_swallow_the_time_limit_by_accident() -> None:
    def careful(x):
        while True:
            try:
                while True:
                    pass
            except Exception:
                continue

    assert run(careful, run=Run(wall_s=0.2)).trouble.kind == "wall"


def test_a_time_limit_is_told_where_leaving_a_block_fails_in_its_turn() -> None:
    class Fails:
        def __enter__(self) -> None:
            pass

        def __exit__(self, *error: object) -> None:
            raise RuntimeError("cannot stop what has not begun")

    def endless(x):
        try:
            with Fails():
                while True:
                    pass
        except RuntimeError as error:
            raise ValueError("something else") from error

    trouble = run(endless, run=Run(wall_s=0.2)).trouble
    assert (trouble.kind, trouble.text) == ("wall", "it did not finish within 0.2 s of wall time")


def test_the_limit_is_off_afterwards() -> None:
    with pytest.raises(OverLimit), time_limit(0.05):
        time.sleep(5)
    with time_limit(0.05):
        pass
    time.sleep(0.1)
