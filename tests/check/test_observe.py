"""observe: what one run may see, change and leave behind, and how it tells what went wrong."""

from __future__ import annotations

import sys
import time
import warnings
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from labkit.check.api import CheckFailed, VerdictView, check, progress
from labkit.exercises import UnknownExercise
from labkit.limits import OverLimit, time_limit
from labkit.observe import gather_answers, make_inputs, observe, observe_rank, public_seed
from labkit.ranks import Comm, simulate
from labkit.spec import Answer, Observation, Oracle, Run, Trouble
from labkit.stage import Stage
from tests.exercises.small import DOUBLE, ORACLE, Size, cell, examined


def run(function, **changes) -> Observation:
    exercise = replace(DOUBLE, **changes)
    tree = make_inputs(exercise, Size(), 0)
    return observe(exercise, SimpleNamespace(double=function), Size(), tree)


def test_the_answer_works_on_a_private_copy_that_comes_back() -> None:
    seen = run(lambda x: x.mul_(2))
    assert seen.tree["x"][0, 0] == 1
    assert seen.back["x"][0, 0] == 2
    assert seen.got["out"][0, 0] == 2


def test_the_result_does_not_share_memory_with_the_inputs() -> None:
    seen = run(lambda x: x)
    seen.got["out"].zero_()
    assert seen.back["x"][0, 0] == 1


def test_settings_are_known_inside_and_put_back_afterwards() -> None:
    inside = {}

    def meddle(x):
        inside.update(grad=torch.is_grad_enabled(), dtype=torch.get_default_dtype())
        torch.set_grad_enabled(False)
        torch.set_default_dtype(torch.float16)
        torch.set_num_threads(1)
        return x

    threads = torch.get_num_threads()
    try:
        torch.set_default_dtype(torch.float64)
        torch.set_grad_enabled(False)
        run(meddle)
        assert inside == {"grad": True, "dtype": torch.float32}
        assert (torch.is_grad_enabled(), torch.get_default_dtype()) == (False, torch.float64)
        assert torch.get_num_threads() == threads
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_grad_enabled(True)


def test_the_notebook_s_settings_do_not_change_a_verdict() -> None:
    source = "def double(x):\n    return x + torch.arange(1, 1 + x.numel()) .reshape(x.shape) * torch.ones(1)"
    try:
        torch.set_default_dtype(torch.float64)
        assert examined(source).passed
    finally:
        torch.set_default_dtype(torch.float32)


def test_every_run_starts_from_the_same_seeds() -> None:
    def noise(x):
        return x * torch.rand(())

    assert torch.equal(run(noise).got["out"], run(noise).got["out"])


class SummedGradient(torch.autograd.Function):
    """The input itself; its gradient is summed over the ranks."""

    @staticmethod
    def forward(ctx, x: torch.Tensor, comm: Comm) -> torch.Tensor:
        ctx.comm = comm
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad: torch.Tensor) -> tuple[torch.Tensor, None]:
        grad = grad.clone()
        ctx.comm.all_reduce(grad)
        return grad, None


def backward_on_ranks(ans: SimpleNamespace, case: Size, tree: dict, stage: Stage) -> dict:
    x = tree["x"].to(stage.device).requires_grad_()
    SummedGradient.apply(x, stage.comm).sum().backward()
    return {"device": stage.device.type, "grad": x.grad}


def test_ranks_live_where_their_messages_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def place(ans: SimpleNamespace, case: Size, tree: dict, stage: Stage) -> dict:
        return {"place": [stage.device.type, stage.rank, stage.world_size]}

    # As if there were a GPU.
    monkeypatch.setattr("labkit.observe.device", lambda: torch.device("meta"))
    assert run(None, drive=place).got == {"place": ["meta", 0, 1]}
    places = [{"place": ["cpu", rank, 2]} for rank in range(2)]
    assert run(None, drive=place, run=Run(ranks=2)).got == {"ranks": places}
    exercise = replace(DOUBLE, drive=place)
    seen, _ = simulate(lambda comm: observe_rank(exercise, SimpleNamespace(), Size(), {}, comm), 2)
    assert [one.got for one in seen] == places


def test_ranks_talk_while_they_go_backward() -> None:
    seen = run(None, drive=backward_on_ranks, run=Run(ranks=2, wall_s=20))
    assert seen.trouble is None
    for rank in seen.got["ranks"]:
        assert rank["device"] == "cpu" and torch.equal(rank["grad"], torch.full((2, 3), 2.0))


@pytest.mark.gpu
def test_ranks_talk_while_they_go_backward_beside_a_gpu() -> None:
    test_ranks_talk_while_they_go_backward()


def test_inputs_depend_on_the_seed_and_nothing_else() -> None:
    exercise = replace(DOUBLE, inputs=lambda case, gen: {"x": torch.randn(3, generator=gen), "shape": (1, 2)})
    torch.manual_seed(1)
    first = make_inputs(exercise, Size(), 5)
    torch.manual_seed(2)
    assert torch.equal(first["x"], make_inputs(exercise, Size(), 5)["x"])
    assert not torch.equal(first["x"], make_inputs(exercise, Size(), 6)["x"])
    assert first["shape"] == [1, 2], "inputs are plain trees, as they would arrive in the grader's worker"
    assert public_seed("90-double", 0) != public_seed("90-double", 1)


def test_stderr_and_warnings_do_not_reach_stderr(capsys) -> None:
    def noisy(x):
        print("to stderr", file=sys.stderr)
        warnings.warn("a warning", stacklevel=1)
        return x

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = lambda message, *_: print(message, file=sys.stderr)
        run(noisy)
    out, err = capsys.readouterr()
    assert err == ""
    assert "to stderr" in out


def test_the_folder_is_empty_and_gone_afterwards() -> None:
    seen = {}

    def drive(ans, case, tree, stage):
        seen["before"] = list(stage.tmp.iterdir())
        (stage.tmp / "file").write_text("x")
        seen["folder"] = stage.tmp
        return {}

    run(None, drive=drive)
    assert seen["before"] == []
    assert not seen["folder"].exists()


def test_what_was_measured_survives_an_error() -> None:
    def drive(ans, case, tree, stage):
        with stage.meter("ops"):
            return {"out": ans.double(tree["x"])}

    def fail(x):
        x + 1
        raise ValueError("after one operation")

    seen = run(fail, drive=drive)
    assert seen.measured == {"dispatches": 1, "flops": 0}
    assert seen.trouble.text == "ValueError: after one operation"


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


@pytest.mark.parametrize(
    ("answer", "value", "kind"),
    [
        (Answer("a"), None, "unanswered"),
        (Answer("a"), ..., "unanswered"),
        (Answer("a"), 3, "type"),
        (Answer("a", kind="value"), 3, None),
        (Answer("a", kind="value"), [], None),
        (Answer("a", kind="value"), ..., "unanswered"),
        (Answer("a", kind="text"), "x = 1", None),
        (Answer("a", kind="text"), "", "unanswered"),
        (Answer("a", kind="text"), 3, "type"),
    ],
)
def test_answers_are_gathered(answer: Answer, value: object, kind: str | None) -> None:
    found = gather_answers(replace(DOUBLE, answers=(answer,)), {"a": value})
    if kind is None:
        assert found.a is value
    else:
        assert isinstance(found, Trouble)
        assert found.kind == kind


def test_check_raises_with_the_verdict_and_shows_one_line_of_it(capsys, monkeypatch) -> None:
    with pytest.raises(CheckFailed) as caught:
        check("00-warm-up", lambda x, dim: x.float().square().mean(dim).to(x.dtype))
    assert caught.value.verdict.outcome == "failed"
    (line,) = caught.value._render_traceback_()
    assert line.startswith("CheckFailed: 00-warm-up: ")
    assert line.endswith("this is the first.")
    monkeypatch.setenv("NBGRADER_VALIDATING", "1")
    assert caught.value._render_traceback_()[0].endswith("the root is missing.")
    assert "the root is missing" in capsys.readouterr().out


def test_check_wants_its_answers() -> None:
    with pytest.raises(TypeError, match=r'write check\("00-warm-up", rms\)'):
        check("00-warm-up")


def test_where_the_truth_is_absent_nothing_is_judged(monkeypatch, capsys) -> None:
    # By sys.modules, because `labkit.check` is the function.
    monkeypatch.setattr(sys.modules["labkit.check.api"], "expectations_present", lambda: False)
    check("00-warm-up", lambda x, dim: None)
    progress("00", {})
    assert capsys.readouterr().out == "00-warm-up: checked by the grader\nlab 00: checked by the grader\n"


def test_progress(capsys) -> None:
    progress("00", {"rms": lambda x, dim: x.float().square().mean(dim).sqrt().to(x.dtype)})
    assert capsys.readouterr().out.splitlines()[0].split() == ["✓", "00-warm-up", "1", "of", "1"]
    progress("00", {})
    assert capsys.readouterr().out.splitlines()[0].split() == ["✗", "00-warm-up", "0", "of", "1"]


def test_progress_adds_up_core_and_optional_points_apart(monkeypatch, capsys) -> None:
    core = replace(DOUBLE, id="90-core", points=4)
    bonus = replace(DOUBLE, id="90-bonus", points=0.4, optional=True)
    oracle = Oracle("90-core", expect=lambda run: {"out": run.tree["x"] * 2})
    monkeypatch.setattr("labkit.exercises.of_lab", lambda lab: {"90-core": core, "90-bonus": bonus})
    monkeypatch.setattr("labkit.oracles.oracle_of", lambda name: oracle)
    progress("90", {"double": lambda x: x * 2})
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0][1:] == ["90-core", "4", "of", "4"]
    assert lines[1][1:] == ["90-bonus", "0.4", "of", "0.4", "(optional)"]
    assert " ".join(lines[2]) == "public cases, in all 4 of 4 points, and 0.4 of 0.4 for what is optional"


def test_progress_starts_no_script_again_that_has_passed(monkeypatch, capsys) -> None:
    started = []

    def drive(answers, case, tree, stage):
        started.append(answers.script)
        return {"out": answers.script == "good"}

    exercise = replace(DOUBLE, id="90-script", answers=(Answer("script", kind="text"),), drive=drive)
    exercise = replace(exercise, public=DOUBLE.public[:1], inputs=lambda case, generator: {})
    oracle = Oracle("90-script", expect=lambda run: {"out": True})
    monkeypatch.setattr("labkit.exercises.find", lambda name: exercise)
    monkeypatch.setattr("labkit.exercises.of_lab", lambda lab: {exercise.id: exercise})
    monkeypatch.setattr("labkit.oracles.oracle_of", lambda name: oracle)
    with pytest.raises(CheckFailed):
        check("90-script", "bad")
    progress("90", {"script": "bad"})
    check("90-script", "good")
    progress("90", {"script": "good"})
    progress("90", {"script": "good "})
    assert started == ["bad", "bad", "good", "good "]
    shown = [line.split()[:3] for line in capsys.readouterr().out.splitlines() if " of " in line and "90-" in line]
    assert shown == [["✗", "90-script", "0"], ["✓", "90-script", "2"], ["✗", "90-script", "0"]]


def test_a_verdict_shows_as_text_and_as_html() -> None:
    verdict = examined("double = lambda x: x", ORACLE)
    assert repr(VerdictView(verdict)).startswith("✗ 90-double")
    assert VerdictView(verdict)._repr_html_().startswith('<div class="labkit-verdict ')


def test_the_id_comes_first() -> None:
    with pytest.raises(TypeError, match="the exercise's id comes first"):
        check(lambda x, dim: x, "00-warm-up")


def test_progress_names_the_labs_that_there_are() -> None:
    with pytest.raises(UnknownExercise, match='there is no lab "7"; known here: 00, '):
        progress("7", {})
