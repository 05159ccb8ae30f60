"""The memory meter finds tensors wherever they hide: in lists, views, closures, and in tensors of other kinds."""

from __future__ import annotations

import linecache
import os
import re
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from torch import nn

from labkit import track_memory
from labkit.meters.memory import fake_tensors
from labkit.meters.memory.budget import PYTHON_NOISE_BYTES, NamedStorages, measure_memory, measure_saved
from labkit.meters.memory.sites import calling_line
from tests.meters.vectors import KIB, vector


def stash_in_list(x: torch.Tensor, kept: list) -> None:
    kept.append(x.exp())


def stash_as_view(x: torch.Tensor, kept: list) -> None:
    kept.append(x.exp()[:1])


def stash_as_numpy(x: torch.Tensor, kept: list) -> None:
    kept.append(x.exp().numpy())


def stash_in_closure(x: torch.Tensor, kept: list) -> None:
    y = x.exp()
    kept.append(lambda: y)


def stash_on_ctx(x: torch.Tensor, kept: list) -> None:
    class Keep(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.hidden = x.exp()
            return x.view_as(x)

        @staticmethod
        def backward(ctx, grad):
            return grad

    kept.append(Keep.apply(x.requires_grad_()))


def stash_in_a_made_tensor(x: torch.Tensor, kept: list) -> None:
    kept.append(torch.tensor(x.tolist()))


def stash_by_resizing(x: torch.Tensor, kept: list) -> None:
    kept.append(torch.empty(0).resize_(x.numel()))


@pytest.mark.parametrize(
    "stash",
    [
        stash_in_list,
        stash_as_view,
        stash_as_numpy,
        stash_in_closure,
        stash_on_ctx,
        stash_in_a_made_tensor,
        stash_by_resizing,
    ],
)
def test_it_is_counted_wherever_it_hides(stash: Callable[[torch.Tensor, list], None]) -> None:
    x, kept = vector(), []
    with track_memory(batch=x) as profile:
        stash(x, kept)
    assert profile.live_bytes == 8 * KIB
    measured: dict = {}
    with measure_saved(measured):
        stash(vector(), more := [])
    assert measured["saved_bytes"] >= 4 * KIB and more


def test_python_and_numpy_memory_is_in_the_budgets_figures() -> None:
    measured, held = {}, {}
    with measure_saved(measured, held), measure_memory(measured, held):
        row = torch.ones(1024)
        kept = np.ones(2**18)
    for name in ("saved_bytes", "peak_bytes"):
        assert measured[name] == pytest.approx(kept.nbytes + row.nbytes - PYTHON_NOISE_BYTES, abs=16 * KIB)
        numbers, tensors = held[name]
        assert re.fullmatch(r"1\.\d+ MiB: numpy arrays and other objects of Python", numbers)
        assert tensors.startswith("4.0 KiB: 1024 float32")
    with measure_saved(measured):
        listed = [float(i) for i in range(2**16)]
    assert measured["saved_bytes"] > 2**20 and listed


def test_the_budgets_figure_names_its_tensors() -> None:
    measured, held = {}, {}
    with measure_memory(measured, held):
        large = torch.ones(64, 1024)
        del large
        small = torch.ones(3)
    assert measured["peak_bytes"] == 256 * KIB and small.sum() == 3
    assert re.fullmatch(r"256\.0 KiB: 64×1024 float32, line \d+: large = torch.ones\(64, 1024\)", held["peak_bytes"][0])


def test_a_long_line_that_made_a_tensor_is_cut_with_dots() -> None:
    measured, held = {}, {}
    with measure_memory(measured, held):
        torch.ones(64, 1024).add_(1).mul_(2).sub_(3).div_(4).add_(5).mul_(6).sub_(7).div_(8).add_(9)
    line = held["peak_bytes"][0].partition(": ")[2].partition(": ")[2]
    assert line == "torch.ones(64, 1024).add_(1).mul_(2).sub_(3).div_(4).add_..."


def test_tensors_alike_are_named_as_one_by_what_they_take_together() -> None:
    measured, held = {}, {}
    with measure_saved(measured, held):
        one = torch.ones(64, 1024)
        rows = [torch.ones(1024) for _ in range(100)]
    assert measured["saved_bytes"] == one.nbytes + 100 * rows[0].nbytes
    assert [text.partition(", line")[0] for text in held["saved_bytes"]] == [
        "100 × 4.0 KiB: 1024 float32",
        "256.0 KiB: 64×1024 float32",
    ]


def test_fake_tensors_answer_what_programs_ask() -> None:
    with fake_tensors():
        x = torch.ones(4, 4)
        assert x.sum().item() == 16.0 and bool((x > 0).all()), "known: it was made of constants"
        assert torch.randn(4).sum().item() == 1.0, "not known"
        assert not torch.randn(4).isnan().any()
        nn.init.trunc_normal_(torch.empty(4, 4))  # draws until it likes what it sees
        layer = nn.Linear(4, 4).to(torch.bfloat16)
        assert layer.weight.dtype is torch.bfloat16 and isinstance(layer.weight, nn.Parameter)
    assert torch.ones(2).sum().item() == 2


class Mean(torch.autograd.Function):
    """Keeps exp(x)."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x.exp())
        return x.mean()

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0]


def test_what_an_autograd_function_keeps_is_an_activation() -> None:
    x = vector(requires_grad=True)
    with track_memory(batch=x) as profile:
        loss = Mean.apply(x)
        assert profile.live_by_category()["activations"] == 4 * KIB + 4
        loss.backward()
    assert max(point.by_category["activations"] for point in profile.timeline) >= 4 * KIB + 4


class BackwardInside(torch.autograd.Function):
    """The identity, whose backward pass runs another one, `depth` deep; beyond 60, in a thread of autograd's own."""

    @staticmethod
    def forward(ctx, x, depth):
        ctx.depth = depth
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        if ctx.depth:
            with torch.enable_grad():
                x = vector(64, requires_grad=True)
                loss = BackwardInside.apply(x, ctx.depth - 1).sigmoid().sum()
            loss.backward()  # the line inside
        return grad, None


def test_what_a_thread_of_autograd_s_makes_has_the_line_that_called_backward() -> None:
    x = vector(1, requires_grad=True)
    with track_memory(batch=x) as profile:
        BackwardInside.apply(x, 64).sum().backward()
    sites = [record.site for record in profile.tracker.records if record.op == "sigmoid_backward"]
    assert len(sites) == 64 and {site.text for site in sites} == {"loss.backward()  # the line inside"}
    with ThreadPoolExecutor() as other:
        file, line = other.submit(calling_line, threading.get_ident()).result()  # the line waited in
    assert linecache.getline(file, line).endswith("# the line waited in\n")


def test_temporaries_inside_composite_operators_in_inference_mode() -> None:
    x, target = torch.randn(64, 64), torch.zeros(64, dtype=torch.int64)
    peaks = []
    for mode in (torch.no_grad, torch.inference_mode):
        with mode(), track_memory(batch=[x, target], sites=False) as profile:
            nn.functional.cross_entropy(x, target)
        peaks.append(profile.peak_bytes)
    assert peaks[0] == peaks[1] > x.nbytes + target.nbytes + 16 * KIB


def test_nested_and_jagged_tensors_count_what_they_hold() -> None:
    parts = [torch.ones(3, 4), torch.ones(2, 4)]
    with track_memory(batch=parts) as profile:
        before_bytes = profile.live_bytes
        nested = torch.nested.nested_tensor(parts, layout=torch.jagged)
        doubled = nested * 2
        assert profile.live_bytes - before_bytes >= 2 * 20 * 4 and doubled is not nested


def test_meta_tensors_hold_nothing() -> None:
    measured: dict = {}
    with measure_memory(measured), track_memory() as profile:
        shape_only = torch.empty(2**28, device="meta")
    assert profile.peak_bytes == 0
    assert measured["peak_bytes"] < shape_only.nbytes, "no more than what Python loads for it"
    with track_memory(batch=shape_only) as asked_for:
        pass
    assert asked_for.peak_bytes == shape_only.nbytes, "what it would take"


def test_numpy_s_memory_counts_once() -> None:
    measured: dict = {}
    with measure_saved(measured):
        kept = torch.from_numpy(np.ones(2**17))
    assert measured["saved_bytes"] == pytest.approx(kept.nbytes - PYTHON_NOISE_BYTES, abs=16 * KIB)


def test_a_block_inside_does_not_hide_the_peak_of_the_one_around_it() -> None:
    outer, inner = {}, {}
    with measure_memory(outer):
        large = np.ones(2**20)
        del large
        with measure_memory(inner):
            pass
    assert outer["peak_bytes"] > 2**22 > inner["peak_bytes"]


def test_an_optimizer_with_an_attribute_that_only_looks_like_a_dict() -> None:
    class Odd:
        items = [torch.ones(4)]

    class Optimizer:
        def __init__(self) -> None:
            self.odd = Odd()

    with track_memory(optimizer=Optimizer()) as profile:
        pass
    assert profile.peak_bytes == 0


def in_a_line_of_pytorchs(text: str) -> object:
    """What this expression makes, as if it stood in a file of PyTorch's."""
    return eval(compile(text, os.path.join(os.path.dirname(torch.__file__), "_ops.py"), "eval"), {"np": np})


def saved_and_peak_bytes(work: Callable[[], object]) -> tuple[float, float]:
    measured: dict = {}
    with measure_saved(measured), measure_memory(measured):
        kept = work()
    assert kept is not None
    return measured["saved_bytes"], measured["peak_bytes"]


def test_a_table_of_pytorch_s_own_that_grows_meanwhile_is_no_answer_s() -> None:
    """One of them takes 144 KiB more when it is full, at whatever call that comes to be."""
    table = "dict.fromkeys(range(10_000))"
    assert saved_and_peak_bytes(lambda: in_a_line_of_pytorchs(table)) == (0, 0)
    assert min(saved_and_peak_bytes(lambda: dict.fromkeys(range(10_000)))) > 256 * KIB, "the same of the answer's own"


@pytest.mark.parametrize(
    "text",
    [
        "np.zeros(2**17)",
        pytest.param("np.zeros(2**16).tolist()", marks=pytest.mark.slow),
        pytest.param("dict.fromkeys(range(100_000))", marks=pytest.mark.slow),
    ],
)
def test_what_is_large_counts_also_in_lines_of_pytorch_s(text: str) -> None:
    """An answer could have it made there: arrays count in full, and objects but for half a MiB."""
    assert min(saved_and_peak_bytes(lambda: in_a_line_of_pytorchs(text))) > 768 * KIB


def test_a_block_that_begins_elsewhere_does_not_hide_the_peak_of_another() -> None:
    """Ranks are threads that take turns, each with a block of its own."""
    first, other = {}, {}
    with measure_memory(first), ThreadPoolExecutor(1) as elsewhere:
        large = [None] * 2**17
        del large

        def begin() -> None:
            with measure_memory(other):
                kept = [None] * 2**16
                assert kept

        elsewhere.submit(begin).result()
    assert first["peak_bytes"] > 768 * KIB > other["peak_bytes"] > 256 * KIB


def test_a_tensor_that_is_freed_while_another_is_noted_leaves_the_count(monkeypatch) -> None:
    """As when the garbage collector runs just then; what a finalizer raises Python only reports."""
    kept, raised = [], []

    class Frees(NamedStorages):
        def about(self, tensor: torch.Tensor, func: object | None) -> object:
            kept.clear()
            return super().about(tensor, func)

    monkeypatch.setattr(sys, "unraisablehook", raised.append)
    with Frees() as storages:
        kept.append(torch.ones(1024))
        other = torch.ones(256)
        assert storages.made_bytes == other.nbytes
    assert raised == []
    assert [one.n_bytes for one in storages.largest_at_peak] == [4096]
