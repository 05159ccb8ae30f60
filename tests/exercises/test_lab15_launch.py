"""Lab 15's launch: what the case promises, what the driver reads back, and that no lie in it earns the points.

One training is launched for all of it; the lies are told about what it brought.
"""

from __future__ import annotations

import copy
import time
from functools import cache
from pathlib import Path

import pytest
import torch

from grading.build.syntax import parse, raises_anywhere
from grading.hidden import Secret, hidden_of
from grading.supervisor import Job, Sandbox, grade_job
from grading.worker.protocol.steps import RunCode, ServeExercise
from labkit.check.judge import judge
from labkit.check.verdict import Verdict
from labkit.exercises.lab15 import torchrun
from labkit.exercises.lab15.launch import LAUNCH, InterruptedTraining, launch, without_magic
from labkit.observe import gather_answers, make_inputs, observe
from labkit.oracles import oracle_of
from labkit.oracles.lab15.launch_training import course, flat
from labkit.spec import CaseRun, Observation
from tests.exercises.harness import answers_in, solution_of
from tests.lanes import MOSTLY_LATER, require_tier

CASE = InterruptedTraining()


@cache
def inputs(case: InterruptedTraining = CASE) -> dict:
    return make_inputs(LAUNCH, case, 1)


def perfect(case: InterruptedTraining = CASE, slip: str = "", given: dict | None = None) -> Observation:
    """What a right script would bring back, from the training in one process; or one with this slip all along.

    given: the inputs, if the script took other ones.
    """
    tree = inputs(case)
    right = course(CaseRun(case, given or tree), slip=slip)
    left = []
    for step in case.kept_at:
        kept = right.at[step]
        left.append(
            {
                "state": "whole",
                "step": step,
                "model": flat(kept["model"].values()),
                "momentum": flat(kept["momentum"]),
                "generators": kept["generators"],
                "names": sorted(kept["model"]),
                "losses": torch.tensor(kept["losses"], dtype=torch.float64),
            }
        )
    first, second = case.kept_at
    got = {
        "ended": 0,
        "error": None,
        "losses": torch.tensor(right.losses, dtype=torch.float64),
        "model": flat(right.at[case.n_steps]["model"].values()),
        "left": left,
        "steps": [[case.kill_steps] * 2, [case.killed_at[1] - first] * 2, [case.n_steps - second] * 2],
        "saves": [["checkpoint.tmp", "result.pt"], []],
    }
    return Observation(case, tree, got, tree)


def verdict(run: Observation) -> Verdict:
    return judge(LAUNCH, oracle_of("15-launch"), [run])


@pytest.mark.parametrize("case", [CASE, InterruptedTraining(begun_steps=11, kill_steps=7)])
def test_the_training_in_one_process_passes_its_own_judge(case: InterruptedTraining) -> None:
    assert verdict(perfect(case)).passed


@pytest.mark.slow
def test_hidden_trainings_pass_their_own_judge_whatever_the_secret() -> None:
    for number in range(20):
        (case,) = hidden_of("15-launch").cases(Secret(b"%d" % number, "15", "ada", "1").draw("15-launch"))
        assert verdict(perfect(case)).passed, case


@pytest.mark.lab("15")
@pytest.mark.full("answers")
@pytest.mark.parametrize("tier", MOSTLY_LATER)
def test_the_solution_passes_in_the_sandbox(tier: str) -> None:
    """Loopback, files and processes are granted: torchrun, its ranks and gloo find all that they need in there."""
    magic, _, text = solution_of("15-launch").partition("\n")
    source = f"{magic.removeprefix('# ')}\n{text}"
    steps = (
        RunCode("15-launch", source),
        ServeExercise("15-launch-check", "15-launch", {"script": source}),
    )
    with Sandbox(require_tier(tier)) as sandbox:
        result = grade_job(sandbox, Job("15_ddp", "ada", "1", steps, (source,), (), b"key"))
    assert result.exercises["15-launch"].outcome == "passed"


LIES = {
    "a curve that was made up": lambda got: got["losses"].mul_(1.01),
    "a curve without its end": lambda got: got.update(losses=got["losses"][:-1]),
    "another model": lambda got: got["model"].add_(0.01),
    "no model": lambda got: got.update(model=None),
    "no kill": lambda got: got.update(left=[]),
    "one kill": lambda got: got["left"].pop(),
    "a checkpoint of another step": lambda got: got["left"][1].update(step=10),
    "a checkpoint with other weights": lambda got: got["left"][0]["model"].add_(0.01),
    "a checkpoint with other momentum": lambda got: got["left"][0]["momentum"].mul_(0.5),
    "a checkpoint with other generators": lambda got: got["left"][0]["generators"].reverse(),
    "a checkpoint with other losses": lambda got: got["left"][0]["losses"].mul_(1.1),
    "an exit code": lambda got: got.update(ended=1),
    "nothing at all": lambda got: got.clear(),
    "strings": lambda got: got.update({name: "x" for name in got}),
    "NaN": lambda got: got["losses"].fill_(torch.nan),
    "a curve of another shape": lambda got: got.update(losses=torch.zeros(3, 4)),
    "checkpoints that are numbers": lambda got: got.update(left=[1, 2]),
}


@pytest.mark.slow
@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_a_lie_about_any_part_of_it_earns_nothing(lie) -> None:
    run = copy.deepcopy(perfect())
    lie(run.got)
    assert verdict(run).outcome == "failed"


def test_the_curve_of_another_secret_does_not_pass() -> None:
    """A begun training's curve depends on numbers that are nowhere but in its checkpoint."""
    case = InterruptedTraining(begun_steps=11, kill_steps=7)
    other = make_inputs(LAUNCH, case, 2)
    run = perfect(case)
    run.tree["begun"] = other["begun"]
    assert verdict(run).outcome == "failed"
    inputs.cache_clear()


def test_every_hidden_start_lies_inside_an_epoch_and_no_kill_beside_a_checkpoint() -> None:
    seen = set()
    for number in range(200):
        (case,) = hidden_of("15-launch").cases(Secret(b"%d" % number, "15", "ada", "1").draw("15-launch"))
        first, second = case.kept_at
        for start in (case.begun_steps, first, second):
            assert start % case.steps_per_epoch, case
        assert case.killed_at[0] % case.every in (2, 3), case
        assert case.begun_steps + case.every < first < second < case.killed_at[1] < case.n_steps - 1, case
        seen.add((case.kill_rank, case.begun_steps, case.kill_steps))
    assert len(seen) > 20


def test_the_line_of_the_magic_is_left_blank_so_that_lines_keep_their_numbers() -> None:
    assert without_magic("%%writefile train.py\nimport os\n") == "\nimport os\n"
    assert without_magic("# %%writefile train.py\nimport os\n") == "\nimport os\n"
    assert without_magic("import os\n# %%writefile x\n") == "import os\n# %%writefile x\n"


def test_the_stub_of_a_script_is_looked_at_as_python() -> None:
    assert raises_anywhere(parse("%%writefile train.py\ndef main():\n    raise NotImplementedError('Write.')\n"))
    assert not raises_anywhere(parse("%%writefile train.py\ndef main():\n    pass\n"))
    with pytest.raises(SyntaxError):
        parse("%%writefile train.py\ndef main(:\n")


@pytest.mark.slow
def test_an_error_of_the_script_is_told_with_its_line(tmp_path: Path) -> None:
    found = launch("%%writefile train.py\n\nx = {}['a name']\n", inputs(), tmp_path, ())
    assert found["error"] in [f"rank {rank}, line 3 of the script: KeyError: 'a name'" for rank in (0, 1)]
    assert found["ended"] == 1
    run = Observation(CASE, inputs(), found, inputs())
    rows = dict(verdict(run).rows)
    assert rows["problem"].startswith("the script failed before any rank was killed (rank ")
    assert "That line of your script raised the error" in verdict(run).hint


@pytest.mark.slow
def test_an_error_about_a_file_names_it_as_the_student_knows_it(tmp_path: Path) -> None:
    script = "import sys\nopen(sys.argv[1] + '/checkpont.pt')\n"
    missing = "FileNotFoundError: [Errno 2] No such file or directory: 'folder/checkpont.pt'"
    found = launch(script, inputs(), tmp_path, ())
    assert found["error"] in [f"rank {rank}, line 2 of the script: {missing}" for rank in (0, 1)]


def has_ended(pid: int) -> bool:
    """Within seconds; one that nobody has waited for yet counts."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] in "ZX":
                return True
        except OSError:
            return True
        time.sleep(0.02)
    return False


@pytest.mark.full("ranks")
@pytest.mark.parametrize(("limit", "seconds"), [("LAUNCH_S", 15.0), ("QUIET_S", 3.0)])
def test_ranks_that_wait_for_ever_are_ended(
    limit: str, seconds: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torchrun, limit, seconds)
    script = "import os, time\nopen('pid-' + os.environ['RANK'], 'w').write(str(os.getpid()))\ntime.sleep(1e6)\n"
    found = launch(script, inputs(), tmp_path, ())
    assert found["ended"] is None
    for path in tmp_path.glob("pid-*"):
        assert has_ended(int(path.read_text()))
    for got in (found, {**perfect().got, "ended": None}):
        run = Observation(CASE, inputs(), got, inputs())
        assert verdict(run).hint.startswith("Some rank waits for another one forever.")


@pytest.mark.slow
def test_the_launch_is_real_and_comes_out_as_in_one_process() -> None:
    answers = gather_answers(LAUNCH, answers_in("15-launch", solution_of("15-launch")))
    run = observe(LAUNCH, answers, CASE, inputs())
    assert run.trouble is None
    # Of the survivors' last step nothing is promised.
    assert run.got["steps"][0][CASE.kill_rank] == CASE.kill_steps
    assert run.got["steps"][1][0] == CASE.kill_saves * CASE.every
    assert run.got["steps"][-1] == [CASE.n_steps - CASE.kept_at[1]] * 2
    assert [left["step"] for left in run.got["left"]] == list(CASE.kept_at)
    assert verdict(run).passed


def test_a_start_that_failed_by_itself_costs_nothing_if_the_next_one_went_through() -> None:
    run = perfect()
    run.got["error"] = "rank 1, line 9 of the script: RuntimeError: connection refused"
    assert verdict(run).passed
    run.got["ended"] = 1
    assert dict(verdict(run).rows)["problem"] == (
        "the script failed in a start in which no rank was killed "
        "(rank 1, line 9 of the script: RuntimeError: connection refused)"
    )


def test_a_lost_momentum_is_named_from_the_curve_alone() -> None:
    run = perfect()
    right = course(CaseRun(CASE, inputs()))
    wrong = course(CaseRun(CASE, inputs()), right.at[CASE.kept_at[0]], "momentum")
    run.got["losses"] = torch.tensor(wrong.losses, dtype=torch.float64)
    found = verdict(run)
    assert dict(found.rows)["problem"] == "from the restart on, the curve is that of an optimizer without its momentum"
    assert found.hint.startswith("The model was restored, but not the optimizer")


SLIPS = {
    "seed without rank": "Both ranks drew the same noise.",
    "summed loss": "an all-reduce adds them up",
    "summed gradients": "The gradients were added up over the ranks",
    "loss after the update": "A step's loss is the one before its update",
    "own loss": "all-reduce a detached copy of the loss",
    "never set_epoch": "without set_epoch every epoch has the order of epoch 0",
}


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_from_the_first_step_on_is_named(slip: str) -> None:
    assert SLIPS[slip] in verdict(perfect(slip=slip)).hint


def test_other_first_weights_are_named_only_where_they_explain_the_curve() -> None:
    given = copy.deepcopy(inputs())
    given["job"]["model"]["weight"] += torch.tensor([[0.7, -1.0, 0.2]])
    run = perfect(given=given)
    found = verdict(run)
    assert dict(found.rows)["problem"] == "the training began with other weights than job['model']"
    assert found.hint.startswith("Load job['model'] into the nn.Linear before the first step")
    run.got["left"][0]["losses"][3] *= 1.05
    run.got["losses"][3] *= 1.05
    assert "began with other weights" not in dict(verdict(run).rows)["problem"]


@pytest.mark.parametrize("counted", [True, False])
def test_an_epoch_that_began_again_is_named_however_it_is_counted(counted: bool) -> None:
    run, right = perfect(), course(CaseRun(CASE, inputs()))
    first, start = CASE.kept_at[0], CASE.kept_at[0] // CASE.steps_per_epoch * CASE.steps_per_epoch
    kept = right.at[first] | {"step": start, "losses": right.losses[:start]}
    loss = course(CaseRun(CASE, inputs()), kept).losses[start]
    for losses in (run.got["losses"], run.got["left"][1]["losses"]):
        losses[start if counted else first] = loss
    if counted:
        run.got["left"][1]["step"] = 10
    assert verdict(run).hint.startswith("The checkpoint lies in the middle of an epoch")
