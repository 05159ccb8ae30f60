"""Lab 03: the figures that the notebook quotes come out of the solution, and the rules are the documented ones."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
import torch

from grading.demo.examples import example
from labkit import exercises
from labkit.check.text import as_text
from labkit.exercises.lab03.autocast_dtypes import BLOCKS, EACH, FAMILIES
from labkit.exercises.lab03.autocast_ops import CALLS
from labkit.forbids import find_forbidden
from labkit.material.lab03 import measured_on_cpu
from labkit.observe import make_inputs
from labkit.oracles.lab03 import scaler_mistakes
from labkit.oracles.lab03.amp_memory import measured
from labkit.oracles.lab03.autocast_dtypes import HIGH, LOW, REST, autocast_to, dtype_of, rule_of
from labkit.oracles.lab03.loss_scaler import by_pytorch
from labkit.oracles.lab03.scaler_mistakes import ByTheTable, as_if, played
from labkit.spec import CaseRun
from tests.exercises.harness import CaseSet, answers_in, public_verdict, solution_of

DOCUMENTED = {
    LOW: {"linear", "matmul", "conv1d", "attention"},
    HIGH: {"layer_norm", "group_norm", "softmax", "log_softmax", "cross_entropy", "mse_loss", "sum", "cumsum", "norm"}
    | {"exp", "log", "pow", "rsqrt", "softplus"},
}
"""PyTorch's documentation, Automatic Mixed Precision, "CUDA Op-Specific Behavior"; attention is measured."""


def is_a_mistake(one: object) -> bool:
    """Of what labkit.oracles.lab03.scaler_mistakes defines."""
    return isinstance(one, type) and issubclass(one, ByTheTable) and one is not ByTheTable


def per_parameter(n_rows: int, training: bool, autocast: bool) -> tuple[float, float]:
    """Bytes for each parameter of a wide stack: by the solution, and measured."""
    widths = (256, 1024, 1024, 256)
    n_parameters = sum(a * b for a, b in itertools.pairwise(widths))
    predict = answers_in("03-amp-memory", solution_of("03-amp-memory"))["bytes_after_forward"]
    predicted = predict(widths, n_rows, training=training, autocast=autocast)
    return predicted / n_parameters, measured(widths, n_rows, training, autocast) / n_parameters


@pytest.mark.parametrize(
    ("training", "autocast", "n_bytes"),
    [(False, False, 4), (False, True, 6), (True, False, 16), (True, True, 18)],
)
def test_bytes_per_parameter_with_a_single_row(training: bool, autocast: bool, n_bytes: int) -> None:
    predicted, found = per_parameter(1, training, autocast)
    assert predicted == pytest.approx(n_bytes, abs=0.02)
    assert found == pytest.approx(predicted, abs=1e-4)


def test_autocast_takes_less_with_many_rows() -> None:
    assert per_parameter(4096, True, True)[1] < 0.75 * per_parameter(4096, True, False)[1]


def test_the_rules_are_the_documented_ones() -> None:
    lists = {rule: {name for name in CALLS if rule_of(name) == rule} for rule in (LOW, HIGH, REST)}
    # `.float()` is on no list; it gives float32 by itself.
    assert lists[LOW] == DOCUMENTED[LOW]
    assert lists[HIGH] - {"float"} == DOCUMENTED[HIGH]


def test_the_cpus_list_lets_softmax_layer_norm_and_sums_in_16_bits() -> None:
    for function, n_inputs in (("softmax", 1), ("layer_norm", 3), ("sum", 1), ("norm", 1)):
        inputs = (torch.bfloat16,) + (torch.float32,) * (n_inputs - 1)
        assert dtype_of(function, inputs, torch.bfloat16, "cpu") == torch.bfloat16
        assert dtype_of(function, inputs, torch.bfloat16, "cuda") == torch.float32
    assert dtype_of("cross_entropy", (torch.bfloat16,), torch.bfloat16, "cpu") == torch.float32


def test_fake_tensors_follow_the_rules_of_real_ones_where_both_can_run() -> None:
    """On the CPU, every block: what the oracle measures on fake tensors is what running it gives."""
    for name in ("gpt", "llama", "head", "conv"):
        ops = BLOCKS[name]
        made = {op.result for op in ops}
        given = {one: torch.float32 for op in ops for one in op.inputs if one not in made}
        given |= {"index": torch.int64} if "index" in given else {}
        dtypes = dict(given)
        for op in ops:
            dtypes[op.result] = dtype_of(op.function, tuple(dtypes[one] for one in op.inputs), torch.bfloat16, "cpu")
        assert measured_on_cpu(ops, given, torch.bfloat16) == {op.result: dtypes[op.result] for op in ops}


def test_the_state_of_autocast_is_put_back() -> None:
    before = torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda")
    with pytest.raises(ZeroDivisionError), autocast_to(torch.bfloat16, "cuda"):
        raise ZeroDivisionError
    assert (torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda")) == before


def test_a_subclass_of_pytorchs_scaler_is_no_answer() -> None:
    source = """
class LossScaler(torch.amp.GradScaler):
    def __init__(self, init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000):
        super().__init__("cpu", init_scale, growth_factor, backoff_factor, growth_interval)
"""
    verdict = public_verdict("03-loss-scaler", source)
    assert verdict.score == 0 and "does the whole job" in as_text(verdict)


@pytest.mark.parametrize(
    ("exercise_id", "wrong", "called"),
    [
        ("03-underflow", "in_percent", "the largest in bin 6; scale = 2^0, 2^8, 2^16"),
        (
            "03-loss-scaler",
            "grows_late_after_a_skip",
            "AdamW with 2 groups of parameters, NaN in steps 1, 2",
        ),
        ("03-train-step", "adds_the_norms", "train_step(..., scaler, max_norm=0.02, dtype=torch.float16), 3 steps"),
        ("03-autocast-dtypes", "the_cpu_list", "16 ops; in given: x float32, all others float32"),
        ("03-amp-memory", "counts_biases", "bytes_after_forward((192, 1024, 768, 320), 1, training=..., autocast=...)"),
    ],
)
def test_a_case_is_told_in_the_students_own_names(exercise_id: str, wrong: str, called: str) -> None:
    text = as_text(public_verdict(exercise_id, example("wrong", f"{exercise_id}/{wrong}").source))
    assert called in " ".join(text.split())


@pytest.mark.parametrize("mistake", [one for one in vars(scaler_mistakes).values() if is_a_mistake(one)])
def test_a_mistaken_scaler_is_taken_for_itself_and_the_right_one_is_not(mistake: type) -> None:
    """Some case tells each of them from the scaler of the table, and that one from PyTorch's nowhere."""
    cases = CaseSet("03-loss-scaler")
    trees = [make_inputs(cases.exercise, case, 0) for case in cases.cases]
    bare = [CaseRun(case, tree) for case, tree in zip(cases.cases, trees, strict=True)]
    for scaler, alike in ((mistake, True), (ByTheTable, False)):
        runs = [replace(run, got=played(run, scaler)) for run in bare]
        assert all(as_if(mistake)(run) for run in runs) is alike
    assert all(as_if(ByTheTable)(replace(run, got=by_pytorch(run))) for run in bare)


@pytest.mark.parametrize(
    ("line", "instead", "explained"),
    [
        ("scaler.step(optimizer)", "scaler.update(); scaler.step(optimizer); return loss", "update is the last call"),
        (
            "nn.utils.clip_grad_norm_(model.parameters(), max_norm)",
            "scaler.unscale_(optimizer)",
            "One unscale_ in each step",
        ),
        ("scaler.unscale_(optimizer)", "scaler.update()", "scaler.unscale_ or scaler.step has to look"),
    ],
)
def test_what_the_scaler_objects_to_is_explained(line: str, instead: str, explained: str) -> None:
    source = solution_of("03-train-step")
    assert line in source
    assert explained in public_verdict("03-train-step", source.replace(line, instead)).hint


def test_an_amount_that_no_hint_explains_is_told_in_bytes_beside_what_it_may_consist_of() -> None:
    source = solution_of("03-amp-memory").replace("n_bytes += 2 * n_parameters", "n_bytes += 2 * n_parameters + 1000")
    text = " ".join(as_text(public_verdict("03-amp-memory", source)).split())
    assert "1,000 bytes too many in inference, autocast. There are 1,228,800 parameters" in text
    assert "320 of the output." in text


def test_every_function_is_asked_with_all_its_inputs() -> None:
    """Whatever the seed draws, a rule that is wrong for one function is found."""
    assert {op.function for op in EACH} | {op.function for ops in BLOCKS.values() for op in ops} == CALLS.keys()


def test_measuring_is_no_answer_to_how_many_bytes_there_are() -> None:
    forbids = exercises.find("03-amp-memory").forbids
    set_up = "from labkit import check, progress, track_memory"
    measured_one = "def bytes_after_forward(widths, n_rows, *, training, autocast):\n    return track_memory(None)"
    assert find_forbidden([set_up, measured_one], ["bytes_after_forward"], forbids)
    assert not find_forbidden([set_up, solution_of("03-amp-memory")], ["bytes_after_forward"], forbids)


def test_drawn_blocks_call_functions_that_exist() -> None:
    assert {name for names in FAMILIES.values() for name in names} - {"layer_norm_of"} <= CALLS.keys()
