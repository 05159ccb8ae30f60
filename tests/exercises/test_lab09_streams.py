"""Lab 09: what the notebook says of streams and waits holds for the solution, and what the judge makes of nonsense."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from labkit import exercises
from labkit.check.judge import judge
from labkit.exercises.lab09.hidden_syncs import Loop, loop_inputs
from labkit.exercises.lab09.profile import NOT_ANSWERED
from labkit.observe import gather_answers, make_inputs, observe
from labkit.oracles import oracle_of
from labkit.oracles.lab09.hidden_syncs import reference
from labkit.oracles.lab09.overlap import true_speedup
from labkit.simdevice import Machine, SimDevice, run_traced
from labkit.spec import Observation
from tests.exercises.harness import TESTS, answers_in, public_verdict, solution_of

IDS = ("09-overlap", "09-hidden-syncs", "09-profile")


def observed(exercise_id: str) -> Observation:
    """The solution on the first public case."""
    exercise = exercises.find(exercise_id)
    answers = gather_answers(exercise, answers_in(exercise_id, solution_of(exercise_id)))
    return observe(exercise, answers, exercise.public[0], make_inputs(exercise, exercise.public[0], 1))


def the_slow_loop() -> object:
    """train_with_waits as the notebook shows it."""
    text = (TESTS.parent / "solutions" / "09_cuda_async.py").read_text()
    source = text[text.index("def train_with_waits") :].split("\n\n\n# %%")[0]
    return answers_in("09-hidden-syncs", source)["train_with_waits"]


@pytest.mark.parametrize(
    ("asked", "quoted"), [((8, 3e-3, 3e-3), 1.78), ((20, 1e-3, 4e-3), 1.23), ((1, 2e-3, 2e-3), 1.0)]
)
def test_the_quoted_speedups(asked: tuple[int, float, float], quoted: float) -> None:
    overlap_speedup = answers_in("09-overlap", solution_of("09-overlap"))["overlap_speedup"]
    assert overlap_speedup(*asked) == pytest.approx(quoted, abs=0.005)
    assert true_speedup(asked) == pytest.approx(overlap_speedup(*asked))


def test_a_copy_that_takes_no_time_gains_nothing() -> None:
    assert true_speedup((8, 0.0, 3e-3)) == 1


def test_the_loop_of_the_notebook_means_the_same_as_the_reference() -> None:
    case = Loop(empty=(4,), overflow=(7,), infinite=(9,))
    tree = loop_inputs(case, torch.Generator().manual_seed(5))
    weight = tree["weight"].clone().requires_grad_()
    batches = list(zip(tree["xs"], tree["ys"], strict=True))
    got = the_slow_loop()(torch.device("cpu"), weight, batches, case.lr)
    *wanted, true_weight = reference(tree, case.lr)
    assert list(got) == pytest.approx(wanted) and got[2] == 3
    assert torch.allclose(weight, true_weight)


def test_an_infinite_loss_has_a_gradient_that_would_change_the_weight() -> None:
    case = Loop(n_steps=6, empty=(), infinite=(3,))
    tree = loop_inputs(case, torch.Generator().manual_seed(5))
    weight = tree["weight"].requires_grad_()
    losses = [F.cross_entropy(F.linear(x, weight), y) for x, y in zip(tree["xs"], tree["ys"], strict=True)]
    assert [bool(loss.isinf()) for loss in losses] == [step == 3 for step in range(6)]
    (grad,) = torch.autograd.grad(losses[3], weight)
    assert grad.isfinite().all() and grad.abs().max() > 0.01


def test_a_step_of_the_slow_loop_waits_nine_times_and_one_without_labels_five() -> None:
    train_with_waits = the_slow_loop()
    case = Loop(n_steps=4, empty=(2,))
    tree = loop_inputs(case, torch.Generator().manual_seed(5))
    with SimDevice(Machine()) as sim:
        weight = tree["weight"].to(sim.device).requires_grad_()
        before = len(sim.commands)
        train_with_waits(sim.device, weight, list(zip(tree["xs"], tree["ys"], strict=True)), case.lr)
        waits = [one for one in sim.commands[before:] if one.kind == "sync" or (one.kind == "copy" and one.blocking)]
    assert len(waits) == 3 * 9 + 5


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("weight -= lr *", "weight = weight - lr *", "was `weight` bound anew?"),
        ("with torch.no_grad():", "if True:", "make it under `with torch.no_grad():`"),
    ],
)
def test_an_error_of_autograd_is_told_in_words_of_the_exercise(old: str, new: str, told: str) -> None:
    source = solution_of("09-hidden-syncs")
    assert old in source and told in str(public_verdict("09-hidden-syncs", source.replace(old, new)).rows)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence")
@pytest.mark.parametrize("exercise_id", [*IDS[:2], pytest.param(IDS[2], marks=pytest.mark.slow)])
def test_what_nobody_would_return_is_no_value_and_no_crash(exercise_id: str) -> None:
    run = observed(exercise_id)

    def verdict(got: object):
        return judge(exercises.find(exercise_id), oracle_of(exercise_id), [replace(run, got=got)])

    assert verdict(run.got).passed
    for absurd in (None, [], "x", float("nan"), torch.full((3,), torch.nan), -1, [{}], [None], {}, [["kernel", "", 0]]):
        for key in set(run.got) - {"n_after"}:
            assert verdict({**run.got, key: absurd}).score == 0, (key, absurd)
        assert verdict(absurd).score == 0


@pytest.mark.slow
def test_the_three_tasks_of_the_profile_are_told_apart() -> None:
    run = observed("09-profile")
    exercise, oracle = exercises.find("09-profile"), oracle_of("09-profile")

    def told(**parts: object) -> tuple[dict[str, str], str | None]:
        verdict = judge(exercise, oracle, [replace(run, got={**run.got, **parts})])
        return dict(verdict.rows), verdict.hint

    rows, hint = told(report=NOT_ANSWERED, own=NOT_ANSWERED)
    assert rows["problem"] == "task 2 of 3, gpu_report: not written yet" and "carry on" in hint
    assert rows["case"].startswith("gpu_report(")
    rows, hint = told(work=NOT_ANSWERED, report={**run.got["report"], "idle_us": -1.0})
    assert rows["problem"].startswith("task 2 of 3, gpu_report: the device was idle") and "carry on" not in hint
    rows, _ = told(work=run.got["work"][1:])
    assert rows["problem"].startswith("task 1 of 3, gpu_work: found") and rows["case"].startswith("gpu_work(")
    rows, _ = told(own={**run.got["own"], "recorded": [1]})
    assert rows["problem"].startswith("task 3 of 3, profile_steps: with n_unsteady=") and "gpu" not in rows["case"]


@pytest.mark.gpu
def test_on_a_gpu_the_results_are_right_and_copies_run_beside_kernels() -> None:
    double_buffered = answers_in("09-overlap", solution_of("09-overlap"))["double_buffered"]
    weight = torch.randn(4096, 4096)
    batches = [torch.randn(4096, 4096).pin_memory() for _ in range(6)]
    results = []

    def prepare(cuda, device):
        on_device = weight.to(device)
        buffers = [torch.empty(4096, 4096, device=device) for _ in range(2)]

        def program():
            results[:] = double_buffered(cuda, lambda x: x @ on_device, batches, buffers)
            return results

        return program

    spans = run_traced(prepare, Machine(), simulate=False).spans
    for batch, result in zip(batches, results, strict=True):
        assert torch.equal(result, batch.cuda() @ weight.cuda())
    copies = [span for span in spans if span.kind == "to device"]
    kernels = [span for span in spans if span.kind == "kernel"]
    assert any(c.start_s < k.end_s and k.start_s < c.end_s for c in copies for k in kernels)


@pytest.mark.gpu
def test_on_a_gpu_the_loop_asks_for_nothing_before_its_end() -> None:
    train = answers_in("09-hidden-syncs", solution_of("09-hidden-syncs"))["train"]
    case = Loop()
    tree = loop_inputs(case, torch.Generator().manual_seed(5))
    asked = 0

    class Counted(list):
        """Batches behind which PyTorch raises at every wait, until they are used up."""

        def __iter__(self):
            torch.cuda.set_sync_debug_mode("error")
            yield from super().__iter__()
            torch.cuda.set_sync_debug_mode("default")
            nonlocal asked
            asked += 1

    weight = tree["weight"].cuda().requires_grad_()
    try:
        got = train(torch.device("cuda"), weight, Counted(zip(tree["xs"], tree["ys"], strict=True)), case.lr)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    *wanted, true_weight = reference(tree, case.lr)
    assert asked == 1 and list(got) == pytest.approx(wanted, rel=1e-4)
    assert torch.allclose(weight.cpu(), true_weight, atol=1e-5)
