"""What inductor would generate, without a compiler: kernels, their bytes in closed form, what is kept for backward."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest
import torch
from torch.nn import functional as F

from labkit import track_compile
from labkit.meters.compile import Saved
from labkit.meters.compile.budget import measure_generated

pytestmark = pytest.mark.slow
N = 64 * 128 * 4
"""Bytes of one of the tensors below."""


@pytest.fixture(autouse=True)
def without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def refuse(*args, **kwargs):
        raise AssertionError(f"a program is started: {args}")

    torch._dynamo.reset()
    monkeypatch.setattr(subprocess, "Popen", refuse)
    yield
    torch._dynamo.reset()


def matrix(**settings) -> torch.Tensor:
    return torch.randn(64, 128, generator=torch.Generator().manual_seed(0), **settings)


def test_an_elementwise_chain_is_one_kernel_that_moves_each_byte_once() -> None:
    def chain(x, y):
        return torch.sigmoid(F.gelu(x * 2) + y.exp())

    x, y = matrix(), matrix()
    with track_compile() as compiled:
        got = torch.compile(chain)(x, y)
    torch.testing.assert_close(got, chain(x, y))
    (kernel,) = compiled.kernels
    assert kernel.generated and (kernel.read_bytes, kernel.written_bytes) == (2 * N, N)
    assert kernel.operations[0] == "mul" and {"erf", "exp", "sigmoid"} <= set(kernel.operations)


def test_a_library_call_stands_between_two_kernels() -> None:
    def layer(x, weight):
        return torch.relu(torch.mm(torch.sin(x), weight)) + 1

    with track_compile() as compiled:
        torch.compile(layer)(matrix(), torch.randn(128, 128))
    product = compiled.kernels[1]
    assert [kernel.generated for kernel in compiled.kernels] == [True, False, True]
    assert (product.read_bytes, product.written_bytes) == (N + 128 * 128 * 4, N)
    assert product.operations == ("mm",)
    assert compiled.kernel_bytes == 2 * N + product.total_bytes + 2 * N


def test_the_results_of_a_library_call_are_written() -> None:
    """Inductor gives each of them a node of its own, and none to a result that nobody reads: indices of the sort."""

    def size(x, y):
        return torch.complex(x, y).abs().sort(0).values * 2

    with track_compile() as compiled:
        torch.compile(size)(matrix(), matrix())
    moved = {kernel.operations[0]: (kernel.read_bytes, kernel.written_bytes) for kernel in compiled.kernels}
    assert moved == {"complex": (2 * N, 2 * N), "abs": (2 * N, N), "sort": (N, N), "mul": (N, N)}


def test_of_a_slice_only_what_is_read_counts() -> None:
    with track_compile() as compiled:
        torch.compile(lambda x: x[:, :16] * 2)(matrix())
    assert [(kernel.read_bytes, kernel.written_bytes) for kernel in compiled.kernels] == [(64 * 16 * 4, 64 * 16 * 4)]


def test_a_row_that_is_broadcast_is_read_once() -> None:
    with track_compile() as compiled:
        torch.compile(lambda x, row: x * row)(matrix(), torch.ones(128))
    assert compiled.kernel_bytes == 2 * N + 128 * 4


def test_what_stays_in_a_kernel_counts_nothing() -> None:
    """A softmax of rows has statistics that two loops share: both are in one kernel."""
    with track_compile() as compiled:
        torch.compile(lambda x: x.softmax(-1))(matrix())
    assert (len(compiled.kernels), compiled.kernel_bytes) == (1, 2 * N)


def test_forward_and_backward_and_what_is_kept() -> None:
    """Of a chain of four operations its input alone is kept: the backward pass recomputes the rest."""

    def chain(x):
        return torch.sin(torch.tanh(torch.exp(x) + 1)).square()

    x, other = matrix(requires_grad=True), matrix(requires_grad=True)
    with track_compile() as compiled:
        torch.compile(chain)(x).sum().backward()
    chain(other).sum().backward()
    torch.testing.assert_close(x.grad, other.grad)
    assert [code.backward for code in compiled.codes] == [False, True]
    (saved,) = compiled.saved
    assert saved.after_bytes < saved.before_bytes and saved.after_bytes in (0, N)
    assert "kept for the backward pass" in str(compiled)


def test_an_activation_budget_lowers_what_is_kept() -> None:
    def layers(x, weights):
        for weight in weights:
            x = torch.sin(x @ weight)
        return x

    def kept(budget: float) -> Saved:
        torch._dynamo.reset()
        weights = [torch.randn(128, 128, requires_grad=True) for _ in range(4)]
        with torch._functorch.config.patch(activation_memory_budget=budget), track_compile() as compiled:
            torch.compile(layers)(matrix(), weights).sum().backward()
        (saved,) = compiled.saved
        return saved

    assert kept(1.0).after_bytes > kept(0.4).after_bytes > kept(0.0).after_bytes == 0


def test_random_numbers_are_those_of_eager_mode() -> None:
    def dropped(x):
        return F.dropout(x * 2, 0.5) + 1

    x, other = matrix(requires_grad=True), matrix(requires_grad=True)
    torch.manual_seed(0)
    with track_compile():
        got = torch.compile(dropped)(x)
    torch.manual_seed(0)
    torch.testing.assert_close(got, dropped(other))
    got.sum().backward()
    assert set(x.grad.unique().tolist()) == {0.0, 4.0}


def test_the_source_is_written_if_it_is_asked_for() -> None:
    for asked in (False, True):
        torch._dynamo.reset()
        with track_compile(source=asked) as compiled:
            torch.compile(lambda x: x.softmax(-1))(matrix())
        assert ("extern_kernels" in compiled.codes[0].source) == ("cpp_fused" in compiled.codes[0].source) == asked


def test_what_other_backends_compile_generates_nothing() -> None:
    with track_compile() as compiled:
        torch.compile(lambda x: x * 2, backend="aot_eager")(matrix())
    assert compiled.codes == () and len(compiled.graphs) == 1


def test_the_meter_adds_up_kernels_and_names_the_largest() -> None:
    measured: dict[str, float] = {}
    held: dict = {}
    with measure_generated(measured, held):
        torch.compile(lambda x, weight: torch.relu(x @ weight) + 1)(matrix(), torch.randn(128, 128))
    product_bytes = 2 * N + 128 * 128 * 4
    assert measured == {"generated_kernels": 1, "library_calls": 1, "kernel_bytes": product_bytes + 2 * N}
    assert held["kernel_bytes"][0] == f"mm: {product_bytes} bytes"


def test_the_compilers_own_settings_are_as_before() -> None:
    from torch._functorch import config as functorch_config
    from torch._inductor import config as inductor_config

    before = (inductor_config.fallback_random, inductor_config.fx_graph_cache, functorch_config.enable_autograd_cache)
    with track_compile():
        assert inductor_config.fallback_random and not inductor_config.fx_graph_cache
    assert before == (
        inductor_config.fallback_random,
        inductor_config.fx_graph_cache,
        functorch_config.enable_autograd_cache,
    )
