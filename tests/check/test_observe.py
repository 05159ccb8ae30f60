"""observe: what one run may see, change and leave behind, and what it gathers of a notebook's answers."""

from __future__ import annotations

import sys
import warnings
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from labkit.observe import gather_answers, make_inputs, observe_rank, public_seed
from labkit.ranks import Comm, simulate
from labkit.spec import Answer, Run, Trouble
from labkit.stage import Stage
from tests.exercises.small import DOUBLE, Size, examined, run


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
    monkeypatch.setattr("labkit.observe.surroundings.device", lambda: torch.device("meta"))
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
