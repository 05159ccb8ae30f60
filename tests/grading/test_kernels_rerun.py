"""Kernels are judged by what they do when they run again, from their text alone: honest ones pass, cheats do not."""

from __future__ import annotations

import os

import pytest

pytest.importorskip("triton", reason="Triton is not installed; it runs the kernels")

from grading.isolation.plan import KERNELS, LIGHT
from grading.isolation.tiers import NONE
from grading.supervisor import Job, Sandbox
from grading.supervisor.kernels import judge_rerun
from grading.supervisor.kernels.rerun import Rerun
from grading.supervisor.result import ExerciseResult
from grading.supervisor.run import preload_of
from labkit import exercises
from labkit.observe import make_inputs
from labkit.oracles import oracle_of
from labkit.spec import Observation
from tests.grading.fake_labs import registered
from tests.grading.lab97.answers import ADD, ADD_KERNEL, IMPORTS, PRODUCT, SILU, SOFTMAX, TOTAL, TOTAL_WITH_SUM
from tests.grading.lab97.cheat import Cheat
from tests.grading.lab97.cheats import CHEATS
from tests.grading.shared_sandboxes import shared_sandbox
from tests.grading.steps import code, count_cpu, exercise, graded
from tests.lanes import MOSTLY_LATER, require_tier

ASKED = os.environ.get("LABS_ISOLATION")


@pytest.fixture(scope="module")
def lab97():
    with registered("97"):
        yield


@pytest.fixture(scope="module", params=[ASKED] if ASKED else MOSTLY_LATER)
def sandbox(lab97, request):
    tier = NONE if request.param == NONE.name else require_tier(request.param)
    return shared_sandbox(tier, (*LIGHT, *KERNELS))


def found(sandbox: Sandbox, name: str, *cells: str) -> ExerciseResult:
    """The result of an exercise; the last of the cells is its own."""
    before = [code(f"c{n}", source) for n, source in enumerate((IMPORTS, *cells[:-1]))]
    return graded(sandbox, *before, code(name, cells[-1]), exercise(name)).exercises[name]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, cells",
    [
        ("97-add", (ADD,)),
        ("97-softmax", (SOFTMAX,)),
        ("97-total", (TOTAL,)),
        ("97-silu", (SILU,)),
        ("97-product", (PRODUCT,)),
        # The last definition counts, wherever an earlier one of the same name stands.
        ("97-add", (ADD_KERNEL.replace(" + tl.load(y", " - tl.load(y"), ADD)),
        ("97-add", (ADD_KERNEL, ADD.replace(ADD_KERNEL, ""))),
        # PyTorch may end a reduction, and may move what it likes.
        ("97-total", (TOTAL_WITH_SUM,)),
        ("97-add", (ADD.replace("torch.empty_like(x)", "x.new_empty(2, x.numel() + 3)[1, 3:]"),)),
        # So may it where constants stand beside what kernels stored, in memory that grew.
        ("97-total", (TOTAL_WITH_SUM.replace("partial.sum()", "torch.cat([partial, partial.new_zeros(3)]).sum()"),)),
        ("97-total", (TOTAL_WITH_SUM.replace("partial.sum()", "torch.cat([partial], out=torch.empty(0)).sum()"),)),
        (
            "97-add",
            (
                ADD.replace("BLOCK_SIZE: tl.constexpr", "BLOCK_SIZE: tl.constexpr = 2**7").replace(
                    ", BLOCK_SIZE=128", ""
                ),
            ),
        ),
    ],
    ids=[
        *(
            "add",
            "compiled",
            "two kernels",
            "autotuned, backward",
            "matrices",
            "twice",
            "elsewhere",
            "sum in PyTorch",
            "moves",
        ),
        *("sum with constants", "memory that grows", "a power"),
    ],
)
def test_honest_kernels_pass(sandbox, name: str, cells: tuple[str, ...]) -> None:
    result = found(sandbox, name, *cells)
    assert (result.outcome, result.score) == ("passed", 1.0), result


@pytest.mark.slow
def test_a_block_that_no_gpu_could_hold_is_named(sandbox) -> None:
    """The compiler would be ended by the clock, as an endless loop is."""
    result = found(sandbox, "97-softmax", SOFTMAX.replace("triton.next_power_of_2(x.shape[1])", "2**18"))
    assert (result.outcome, result.score) == ("failed", 0.0), result
    assert "Give a block a fixed length" in str(result.deciding.redacted())


@pytest.mark.slow
def test_the_rerun_is_a_part_of_what_grading_took(sandbox, monkeypatch) -> None:
    counted = count_cpu(sandbox, monkeypatch)
    result = graded(sandbox, code("a", IMPORTS), code("97-add", ADD), exercise("97-add"))
    assert result.exercises["97-add"].outcome == "passed" and len([seconds for seconds in counted if seconds]) == 3
    assert result.usage["cpu_s"] == pytest.approx(sum(counted), abs=0.001)


@pytest.mark.slow
@pytest.mark.parametrize("cheat", CHEATS, ids=[cheat.tries for cheat in CHEATS])
def test_a_cheat_earns_nothing(sandbox, cheat: Cheat) -> None:
    result = found(sandbox, cheat.exercise, *cheat.cells)
    assert (result.outcome, result.score) == (cheat.outcome, 0.0), result
    deciding = result.deciding
    told = str(deciding.rows) if cheat.outcome == "suspected" else str(deciding.redacted())
    assert cheat.says in told, deciding


@pytest.mark.parametrize(
    "shown, hint",
    [
        (("_softmax",), "The result rests on `_softmax`, computed by PyTorch"),
        (("_softmax", "sort", "_softmax"), "The result rests on `_softmax` or `sort`, computed by PyTorch"),
        (("n_is_257", "add"), "The result rests on `add`, computed by PyTorch"),
        (("n_is_257", "add.out", "größe", "__class__", "", ["add"]), "Let the result come out of the kernels"),
        (("add", "sub", "mul", "div"), "Let the result come out of the kernels"),
        ((), "Let the result come out of the kernels"),
        (None, "Let the result come out of the kernels"),
    ],
)
def test_a_hint_names_operations_of_pytorchs_that_the_public_cases_took(lab97, shown, hint) -> None:
    """What the hidden cases took is for the instructor: a choice of one operation in a thousand tells ten bits."""
    asked, oracle = exercises.find("97-add"), oracle_of("97-add")
    tree = make_inputs(asked, asked.public[0], 1)
    wrong = Observation(asked.public[0], tree, {"out": tree["x"]}, tree)
    record = None if shown is None else {"entries": [{"do": "lost", "name": name} for name in shown]}
    verdict = judge_rerun(asked, oracle, None, Rerun((wrong,), lost=("sin", "n_is_300")), 1, [record])
    assert (verdict.outcome, verdict.score) == ("failed", 0.0) and verdict.hint.startswith(hint)
    assert "sin, n_is_300" in str(verdict.rows)
    assert "sin" not in str(verdict.redacted()) and "n_is" not in str(verdict.redacted())


@pytest.mark.parametrize("text, loaded", [(IMPORTS, True), ("import torch", False)])
def test_triton_is_loaded_ahead_for_a_lab_that_names_it(text: str, loaded: bool) -> None:
    assert (KERNELS[0] in preload_of(Job("97_test", "ada", "1", (), (text,), (), b""))) == loaded


def test_the_compiler_is_loaded_ahead_for_a_lab_that_counts_what_it_does() -> None:
    def loaded(text: str) -> tuple[str, ...]:
        return preload_of(Job("97_test", "ada", "1", (), (text,), (), b""))

    assert "grading.worker.compiling" in loaded("from labkit import track_compile")
    assert "grading.worker.compiling" not in loaded("torch.optim.SGD")
