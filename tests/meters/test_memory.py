"""The memory meter on programs small enough to count by hand, and on what could upset it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module

import pytest
import torch
from torch import nn

from labkit import limit_memory, track_memory
from tests.meters.vectors import KIB, vector


class Chain(nn.Module):
    """y = w3 sigmoid(w2 sigmoid(w1 x)), elementwise: every sigmoid keeps its output, every product its factors."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = nn.ParameterList([nn.Parameter(vector()) for _ in range(3)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for weight in self.weights[:-1]:
            x = torch.sigmoid(weight * x)
        return self.weights[-1] * x


def test_a_training_step_counted_by_hand() -> None:
    model, x = Chain(), vector()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=False)
    with track_memory(model, optimizer, x) as profile:
        assert profile.live_by_category() == {"parameters": 12 * KIB, "inputs": 4 * KIB}
        loss = model(x).sum()
        profile.mark("end of forward")
        # Two sigmoids; the products before them are gone, the last product too: its sum needs its shape only.
        assert profile.live_by_category() == {"parameters": 12 * KIB, "activations": 8 * KIB + 4, "inputs": 4 * KIB}
        loss.backward()
        assert profile.live_by_category()["gradients"] == 12 * KIB
        optimizer.step()
        assert profile.live_by_category()["optimizer"] == 12 * KIB
        optimizer.zero_grad(set_to_none=True)
    assert profile.live_by_category() == {
        "parameters": 12 * KIB,
        "optimizer": 12 * KIB,
        "activations": 4,
        "inputs": 4 * KIB,
    }
    (label, index) = profile.marks[0]
    assert label == "end of forward" and profile.timeline[index].op == "sum"
    assert profile.timeline[index].live_bytes == 28 * KIB + 4, "and the product that is being summed"
    assert profile.timeline[index].by_category["temporaries"] == 4 * KIB
    assert profile.peak_bytes == max(point.live_bytes for point in profile.timeline)


def test_gradients_and_states_that_were_there_before() -> None:
    model, x = Chain(), vector()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=False)
    model(x).sum().backward()
    optimizer.step()
    with track_memory(model, optimizer, x) as profile:
        pass
    assert profile.peak_by_category == {
        "parameters": 12 * KIB,
        "gradients": 12 * KIB,
        "optimizer": 12 * KIB,
        "inputs": 4 * KIB,
    }
    assert profile.peak_bytes == 40 * KIB


def test_what_is_not_named_is_found_when_it_is_used() -> None:
    weight, x = nn.Parameter(vector()), vector()
    with track_memory() as profile:
        torch.ones(2).sum()
        (weight * x).sum().backward()
    assert profile.timeline[0].by_category["parameters"] == 4 * KIB, "counted from the start"
    assert profile.timeline[0].live_bytes == 8 * KIB
    assert profile.live_by_category() == {"parameters": 4 * KIB, "gradients": 4 * KIB, "inputs": 4 * KIB}


def test_what_is_not_named_counts_on_a_gpu_s_machine_too(monkeypatch) -> None:
    monkeypatch.setattr(import_module("labkit.devices"), "has_gpu", lambda: True)
    with track_memory() as profile:
        kept = vector()
    assert profile.peak_bytes == kept.nbytes


def test_a_students_own_optimizer() -> None:
    class Momentum:
        def __init__(self, parameters: list[nn.Parameter]) -> None:
            self.parameters, self.moments = parameters, {}

        @torch.no_grad()
        def step(self) -> None:
            for i, parameter in enumerate(self.parameters):
                self.moments[i] = self.moments.get(i, torch.zeros_like(parameter)) * 0.9 + parameter.grad
                parameter -= self.moments[i]

    model, x = Chain(), vector()
    optimizer = Momentum(list(model.parameters()))
    with track_memory(model, optimizer, x) as profile:
        model(x).sum().backward()
        optimizer.step()
    assert profile.live_by_category()["optimizer"] == 12 * KIB


def test_freed_during_backward() -> None:
    """The activations go one by one as backward uses them."""
    model, x = Chain(), vector()
    with track_memory(model, batch=x) as profile:
        model(x).sum().backward()
    activations = [point.by_category["activations"] for point in profile.timeline]
    assert 8 * KIB < max(activations) <= 8 * KIB + 8, "two vectors, the loss and its gradient"
    assert profile.live_by_category().get("activations", 0) == 0


def test_resized_in_place() -> None:
    given, made = vector(4), None
    with track_memory(batch=given) as profile:
        given.resize_(2 * KIB)
        assert profile.live_bytes == 8 * KIB
        made = torch.empty(KIB)
        made.resize_(3 * KIB)
        assert profile.live_bytes == 20 * KIB
        made.untyped_storage().resize_(0)
        made.view(-1)  # seen the next time that it is used
    assert profile.timeline[0].live_bytes == 4 * KIB
    assert profile.live_bytes == 8 * KIB
    assert profile.peak_bytes == 20 * KIB


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr", "to_sparse_csc"])
def test_sparse_tensors_count_what_they_hold(layout: str) -> None:
    dense = torch.eye(64)
    with track_memory(batch=dense) as profile:
        sparse = getattr(dense, layout)()
        n_bytes = profile.live_bytes - dense.nbytes
        # The compressed layouts are made from the same indices, of which they keep both rows.
        assert n_bytes == 64 * (2 * 8 + 4) + (0 if layout == "to_sparse" else 65 * 8)
        del sparse
        assert profile.live_bytes == dense.nbytes


def test_an_exception_puts_everything_back() -> None:
    model, x = Chain(), vector()
    with pytest.raises(ZeroDivisionError), track_memory(model, batch=x) as profile:
        model(x).sum().backward()
        1 / 0  # noqa: B018
    n_points = len(profile.timeline)
    assert profile.live_by_category()["gradients"] == 12 * KIB
    model(x).sum().backward()
    assert len(profile.timeline) == n_points, "nothing is followed any more"
    assert not any(parameter._post_accumulate_grad_hooks for parameter in model.parameters())
    torch.manual_seed(0)
    inside = torch.dropout(x, 0.5, True)
    assert inside.grad_fn is None and torch.utils._python_dispatch._get_current_dispatch_mode() is None


def test_nested_meters_see_the_same() -> None:
    x = vector()
    with track_memory(batch=x) as outer:
        first = x.exp()
        with track_memory(batch=x) as inner:
            second = x.exp()
        third = x.exp()
    assert outer.peak_bytes == 16 * KIB and first is not third
    assert inner.peak_bytes == 8 * KIB and second is not None


def test_several_kinds_of_device_are_refused_or_chosen() -> None:
    model = nn.ModuleList([nn.Linear(8, 8, bias=False), nn.Linear(8, 4, bias=False, device="meta")])
    with pytest.raises(ValueError, match=r'tensors on cpu and meta, .* measure: device="meta"'):
        track_memory(model).__enter__()
    with track_memory(model, device="cpu") as profile:
        pass
    assert profile.peak_bytes == 8 * 8 * 4


@pytest.mark.parametrize("meter", [track_memory, partial(limit_memory, 100)])
@pytest.mark.parametrize("named", [{}, {"device": "cpu"}])
def test_an_optimizer_in_the_model_s_place(meter: Callable, named: dict) -> None:
    optimizer = torch.optim.SGD([vector()])
    with pytest.raises(TypeError, match="model is of type SGD, not a Module; after it come optimizer and batch"):
        meter(optimizer, **named).__enter__()


def test_dropout_keeps_one_byte_an_element_and_the_same_values() -> None:
    x = vector(4).requires_grad_()
    torch.manual_seed(0)
    wanted = nn.functional.dropout(x, 0.3)
    torch.manual_seed(0)
    with track_memory(batch=x) as profile:
        got = nn.functional.dropout(x, 0.3)
        assert profile.live_by_category()["activations"] == 4 * KIB + KIB
    assert torch.equal(got, wanted)


def test_a_site_is_the_line_that_made_the_tensor() -> None:
    x = vector()
    with track_memory(batch=x) as profile:
        kept = x * 2  # the line
    (made,) = [tensor for tensor in profile.at_peak if tensor.category != "inputs"]
    assert made.site.text == "kept = x * 2  # the line" and kept is not None
    assert made.site.where.startswith("test_memory.py, line ")
    assert (made.nbytes, made.shape, made.dtype, made.op) == (4 * KIB, (KIB,), torch.float32, "mul.Tensor")
    assert "4.0 KiB activations: 1024 float32, made by mul.Tensor at test_memory.py, line " in str(made)
    assert profile.report().startswith("peak 8.0 KiB\n")


def test_a_limit_raises_what_a_device_would_and_leaves_a_clean_state() -> None:
    x = vector(4)
    with limit_memory(12 * KIB, batch=x) as profile:
        y = x + 1
        with pytest.raises(torch.OutOfMemoryError) as caught:
            torch.cat([x, x, x])
        assert str(caught.value) == (
            "limit_memory: out of memory. Tried to allocate 12.0 KiB in cat; "
            "the limit is 12.0 KiB, of which 4.0 KiB is free."
        )
        del caught
        assert profile.live_bytes == 8 * KIB
        z = x + y
        z += 1  # in place: nothing more
    assert profile.live_bytes == 12 * KIB
    with pytest.raises(
        ValueError, match=r"limit_memory\(2\.0 KiB\): what the block starts with takes 4\.0 KiB already"
    ):
        limit_memory(2 * KIB, batch=x).__enter__()


def test_a_closure_s_passes_are_no_temporaries_of_the_step() -> None:
    model, x = Chain(), vector()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=1)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = model(x).sum()
        loss.backward()
        return loss

    with track_memory(model, optimizer, x) as profile:
        optimizer.step(closure)
    assert max(point.by_category["activations"] for point in profile.timeline) >= 8 * KIB


def test_a_model_made_in_the_block() -> None:
    with track_memory() as profile:
        layer = nn.Linear(32, 32, bias=False)
        layer(torch.ones(2, 32)).sum().backward()
        held = profile.live_by_category()
        del layer
        assert profile.live_bytes == 0, "the meter keeps nothing alive"
    assert (held["parameters"], held["gradients"]) == (4 * KIB, 4 * KIB)
