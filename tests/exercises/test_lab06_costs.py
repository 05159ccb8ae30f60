"""Lab 06: what its tables say of the libraries' optimizers, and which model fits into a number of bytes."""

from __future__ import annotations

import importlib.machinery
import math
import sys
from collections import Counter
from functools import partial
from types import ModuleType

import pytest
import torch

from labkit.material import lab06, optimizer_costs
from labkit.material.optimizer_costs import step_cost

ADAMW = torch.optim.AdamW


@pytest.mark.parametrize(
    ("settings", "at_4", "at_40", "temporary"),
    [({"foreach": False}, 42, 402, 0.3), ({"foreach": True}, 20, 92, 4.0), ({"fused": True}, 4, 4, 0.0)],
)
def test_operations_and_temporary_bytes_are_those_that_the_notebook_names(settings, at_4, at_40, temporary) -> None:
    make = partial(ADAMW, **settings)
    assert step_cost(make, 4).dispatches == at_4
    assert step_cost(make, 40) == optimizer_costs.StepCost(at_40, pytest.approx(temporary, abs=1e-9))


def test_the_shapes_are_those_of_t5_3b() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.T5Config(vocab_size=32128, d_model=1024, d_kv=128, d_ff=16384, num_layers=24, num_heads=32)
    with torch.device("meta"):
        model = transformers.T5ForConditionalGeneration(config)
    shapes = lab06.t5_3b_shapes()
    assert Counter(shapes) == Counter(tuple(parameter.shape) for parameter in model.parameters())
    assert (len(shapes), sum(map(math.prod, shapes))) == (509, 2_851_598_336)


@pytest.mark.slow
def test_at_equal_bytes_the_widest_model_that_fits_is_trained(capsys) -> None:
    plan = lab06.Plan(partial(ADAMW, fused=True))
    n_bytes = optimizer_costs._all_bytes(plan, 8)
    for given, width in ((n_bytes, 8), (n_bytes - 1, 7)):
        losses = lab06.train_at_equal_bytes({"AdamW": plan}, given, n_steps=3)["AdamW"]
        assert len(losses) == 3
        assert capsys.readouterr().out.splitlines()[1].split()[1] == str(width)


def test_bytes_are_weights_gradients_and_states() -> None:
    n_parameters = sum(map(math.prod, optimizer_costs._shapes(8)))
    largest = max(map(math.prod, optimizer_costs._shapes(8)))
    adamw = optimizer_costs._all_bytes(lab06.Plan(partial(ADAMW, fused=True)), 8)
    # The library's count of steps is a float32 of its own in each of seven tensors.
    assert adamw == 16 * n_parameters + 4 * 7
    in_backward = lab06.Plan(partial(torch.optim.SGD, lr=0.1), in_backward=lab06.torchs_step_in_backward)
    assert optimizer_costs._all_bytes(in_backward, 8) == 4 * n_parameters + 4 * largest


def test_pytorchs_own_step_in_the_backward_pass_frees_gradients_and_learns_the_same(capsys) -> None:
    ways = {"loop": None, "own": lab06.torchs_step_in_backward}
    loop, own = lab06.compare_in_backward(ways, partial(ADAMW, lr=3e-3, fused=True), n_steps=6).values()
    assert own.losses == pytest.approx(loop.losses, abs=1e-6)
    assert loop.state_bytes == 4 and own.state_bytes == pytest.approx(1.59, abs=0.01)
    assert "gradients" in capsys.readouterr().out


def installed(monkeypatch: pytest.MonkeyPatch, adam: object) -> None:
    """bitsandbytes, as far as the lab uses it."""
    package, optim = ModuleType("bitsandbytes"), ModuleType("bitsandbytes.optim")
    package.__spec__, optim.Adam8bit = importlib.machinery.ModuleSpec("bitsandbytes", None), adam
    monkeypatch.setitem(sys.modules, "bitsandbytes", package)
    monkeypatch.setitem(sys.modules, "bitsandbytes.optim", optim)


def test_bitsandbytes_has_a_row_where_it_runs(monkeypatch, capsys) -> None:
    installed(monkeypatch, torch.optim.Adam)
    (make,) = lab06.bitsandbytes_8bit(lr=0.5).values()
    assert make([torch.nn.Parameter(torch.ones(2))]).defaults["lr"] == 0.5
    assert capsys.readouterr().out == ""


def test_bitsandbytes_that_does_not_run_has_no_row(monkeypatch, capsys) -> None:
    def needs_a_gpu(params: object, lr: float) -> None:
        raise NotImplementedError("no kernel for the CPU")

    installed(monkeypatch, needs_a_gpu)
    assert lab06.bitsandbytes_8bit(lr=0.5) == {}
    assert "does not run here: no kernel for the CPU" in capsys.readouterr().out


def test_bitsandbytes_that_is_missing_has_no_row(monkeypatch, capsys) -> None:
    monkeypatch.setattr(lab06, "find_spec", lambda name: None)
    assert lab06.bitsandbytes_8bit(lr=0.5) == {}
    assert "not installed" in capsys.readouterr().out
