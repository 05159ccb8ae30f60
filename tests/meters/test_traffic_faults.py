"""Lanes out of bounds and races are named exactly, and nothing that is right is accused."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("triton", reason="Triton is not installed; it runs the kernels")

from triton.runtime.errors import InterpreterError

from labkit.meters import METERS
from labkit.meters.traffic import measure_traffic, track_traffic
from tests.kernels.add import add, add_kernel, add_without_mask_kernel
from tests.kernels.faults import (
    atomic_sum_kernel,
    gather_kernel,
    last_program_sum,
    locked_sum,
    racy_sum,
    same_place_kernel,
    shift_kernel,
)
from tests.kernels.masked import dot_kernel, sum_after_where_kernel, sum_kernel
from tests.kernels.softmax import softmax_kernel


def texts(found: list) -> list[str]:
    return [str(one) for one in found]


def test_a_missing_mask() -> None:
    x = torch.arange(1000.0)
    with track_traffic() as traffic:
        out = add(x, x, kernel=add_without_mask_kernel)
    assert torch.equal(out, 2 * x), "what lies inside is right"
    where = "kernel add_without_mask_kernel, program (3, 0, 0)"
    rest = "[1000], which has 1000 elements, and 23 more lanes"
    # Both factors are one tensor, and are still told apart by name.
    assert texts(traffic.out_of_bounds) == [
        f"{where}: load of x_ptr{rest}",
        f"{where}: load of y_ptr{rest}",
        f"{where}: store of out_ptr{rest}",
    ]
    assert traffic.launches[0].load_bytes == 8000, "lanes out of bounds move nothing"


def test_far_and_negative_addresses_do_no_harm() -> None:
    for first, index in ((-5, -5), (2**31 - 1, 2**31 - 1), (-(2**31), -(2**31))):
        out = torch.full((8,), 7.0)
        with track_traffic() as traffic:
            gather_kernel[(1,)](torch.arange(8.0), out, 0, first, BLOCK_SIZE=8)
        assert texts(traffic.out_of_bounds) == [
            f"kernel gather_kernel, program (0, 0, 0): load of x_ptr[{index}], which has 8 elements, and 7 more lanes"
        ]
        assert out.tolist() == [0.0] * 8


def test_a_neighbouring_tensor_does_not_hide_it() -> None:
    """Two arguments in one allocation, the second right behind the first."""
    both = torch.arange(16.0)
    with track_traffic() as traffic:
        gather_kernel[(1,)](both[:8], both[8:], 1, 4, BLOCK_SIZE=8)
    assert [(one.argument, one.index, one.lanes) for one in traffic.out_of_bounds] == [("x_ptr", 8, 4)]


def test_an_empty_argument() -> None:
    with track_traffic() as traffic:
        gather_kernel[(1,)](torch.empty(0), torch.zeros(1), 1, 0, BLOCK_SIZE=1)
    assert texts(traffic.out_of_bounds) == [
        "kernel gather_kernel, program (0, 0, 0): load of x_ptr[0], which has 0 elements"
    ]


def test_a_racy_accumulation() -> None:
    with track_traffic() as traffic:
        racy_sum(torch.ones(256))
    assert texts(traffic.races) == [
        "kernel racy_sum_kernel, out_ptr[0]: load by program (1, 0, 0) after store by program (0, 0, 0), "
        "in no given order, and 2 more elements",
        "kernel racy_sum_kernel, out_ptr[0]: store by program (1, 0, 0) after store by program (0, 0, 0), "
        "in no given order, and 2 more elements",
    ]


def test_programs_that_write_what_others_read() -> None:
    with track_traffic() as traffic:
        shift_kernel[(4,)](torch.zeros(5 * 16), 16, BLOCK_SIZE=16)
    assert [(race.kind, race.index, race.first, race.second) for race in traffic.races] == [
        ("store after load", 16, (0, 0, 0), (1, 0, 0))
    ]
    assert traffic.races[0].elements == 3 * 16


def test_a_program_that_read_before_others_did_is_seen() -> None:
    """Element 0 is read by both programs, its writer last: the other reader must not be forgotten."""
    x = torch.zeros(16)
    with track_traffic() as traffic:
        shift_kernel[(2,)](x.expand(1, 16)[0], -8, BLOCK_SIZE=8)
    assert [(one.argument, one.lanes) for one in traffic.out_of_bounds] == [("x_ptr", 8)]
    assert [(race.kind, race.index) for race in traffic.races] == [("load after store", 0)]


@pytest.mark.parametrize(
    "run",
    [
        lambda: racy_sum(torch.ones(256), kernel=atomic_sum_kernel),
        lambda: locked_sum(torch.ones(6, 32)),
        lambda: last_program_sum(torch.ones(256)),
        lambda: shift_kernel[(4,)](torch.zeros(64), 0, BLOCK_SIZE=16),
    ],
    ids=["atomics", "lock", "last-program", "in-place"],
)
def test_no_race_where_there_is_order(run) -> None:
    with track_traffic() as traffic:
        run()
    assert texts(traffic.races) == []
    assert texts(traffic.out_of_bounds) == []


def test_a_relaxed_counter_orders_nothing() -> None:
    with track_traffic() as traffic:
        last_program_sum(torch.ones(256), sem="relaxed")
    assert [(race.argument, race.kind, race.elements) for race in traffic.races] == [
        ("part_ptr", "load after store", 3)
    ]


def test_each_launch_orders_what_came_before() -> None:
    x = torch.ones(64)
    with track_traffic() as traffic:
        racy_sum(x)
        racy_sum(x)
    assert len(traffic.launches) == 2
    assert traffic.races == []


def test_lanes_that_store_different_values_in_one_place() -> None:
    for step, races in ((0, []), (1, [("lanes", 0, 8)])):
        with track_traffic() as traffic:
            same_place_kernel[(1,)](torch.zeros(8), step, BLOCK_SIZE=16)
        assert [(race.kind, race.index, race.elements) for race in traffic.races] == races
    assert str(traffic.races[0]) == (
        "kernel same_place_kernel, out_ptr[0]: two lanes of program (0, 0, 0) store different values at once, "
        "and 7 more elements"
    )


def test_a_failed_launch_leaves_nothing_behind() -> None:
    x, out = torch.ones(4, 8), torch.zeros(4, 8)
    with track_traffic() as traffic, pytest.raises(InterpreterError):
        softmax_kernel[(4,)](out, x, 8, 8, 8, BLOCK_SIZE=7)
    assert [launch.kernel for launch in traffic.launches] == ["softmax_kernel"]
    with track_traffic() as traffic:
        add(x, x)
    assert len(traffic.launches) == 1
    add(x, x)
    assert len(traffic.launches) == 1, "nothing is counted after the block"


def test_blocks_may_be_nested() -> None:
    x = torch.ones(8)
    with track_traffic() as outer:
        add(x, x)
        with track_traffic() as inner:
            add(x, x)
    assert (len(outer.launches), len(inner.launches)) == (2, 1)
    assert (outer.load_bytes, inner.load_bytes) == (128, 64)
    with track_traffic() as outer:
        with track_traffic() as inner:
            add(x, x)
        add(x, x)
    assert (len(outer.launches), len(inner.launches)) == (2, 1), "though both had the same launches when one closed"


def test_the_figures_of_a_budget_add_up() -> None:
    measured: dict = {}
    held: dict = {}
    x = torch.ones(300)
    for kernel in (add_kernel, add_without_mask_kernel):
        with measure_traffic(measured, held):
            add(x, x, kernel=kernel)
    x = torch.ones(128)
    with measure_traffic(measured, held):
        racy_sum(x)
    assert measured == {
        "load_bytes": 2 * 2400 + 512 + 8,
        "store_bytes": 2 * 1200 + 4 + 8,
        "atomic_bytes": 0,
        "launches": 3,
        "out_of_bounds": 3 * 212,
        "races": 2,
        "undefined": 0,
        "sector_efficiency": (512 + 16) / (512 + 4 * 32),
    }
    assert held["load_bytes"][:2] == ["add_kernel x_ptr: 1,200 bytes", "add_kernel y_ptr: 1,200 bytes"]
    assert held["store_bytes"][-1] in ("torch.zeros: 4 bytes", "torch.zero_: 4 bytes")
    assert len(held["out_of_bounds"]) == 3
    assert len(held["races"]) == 2


@pytest.mark.parametrize("meter", [METERS["traffic"], measure_traffic])
def test_what_no_kernel_stores_is_no_number(meter) -> None:
    """Also where the memory held the right answer a moment ago."""
    x = torch.arange(1000.0)
    for _ in range(3):
        torch.add(x, x)
        with meter({}, {}):
            out = torch.empty_like(x)
            add_kernel[(1,)](x, x, out, 500, BLOCK_SIZE=512)
        assert torch.equal(out[:500], 2 * x[:500])
        assert out[500:].isnan().all()
    assert not torch.are_deterministic_algorithms_enabled(), "as before"


def test_a_launch_on_a_gpu_is_refused(monkeypatch) -> None:
    from triton.runtime.jit import JITFunction

    monkeypatch.setattr("labkit.meters.traffic.track.has_gpu", lambda: True)
    before = JITFunction.run
    with track_traffic(), pytest.raises(RuntimeError) as error:
        JITFunction(add_kernel.fn)[(1,)](None, None, None, 0, BLOCK_SIZE=1)
    assert str(error.value) == (
        "the traffic of kernel add_kernel cannot be counted on a GPU: call "
        "labkit.interpreter.enable(beside_gpu=True) before the block and give it tensors on the CPU"
    )
    assert JITFunction.run is before


def test_what_lies_between_the_elements_of_a_view() -> None:
    """A kernel that takes its argument for contiguous reads neighbours that the view does not have."""
    x, out = torch.arange(30.0).view(10, 3)[:, 1], torch.full((10,), 7.0)
    with track_traffic() as traffic:
        gather_kernel[(1,)](x, out[:8], 1, 0, BLOCK_SIZE=8)
    assert texts(traffic.out_of_bounds) == [
        "kernel gather_kernel, program (0, 0, 0): load of x_ptr[1], which lies between the elements of a tensor of "
        "strides (3,), and 4 more lanes"
    ]
    assert out.tolist() == [*range(1, 9), 7, 7], "a meter changes no value where memory is there"
    assert traffic.launches[0].load_bytes == 8 * 4


@pytest.mark.parametrize(
    "x",
    [
        torch.arange(30.0).view(10, 3)[:, 1],
        torch.arange(10.0).expand(4, 10)[2],
        torch.arange(20.0).view(10, 2).t()[1],
        torch.arange(10.0)[::3],
    ],
    ids=["column", "expanded", "transposed", "every-third"],
)
def test_a_kernel_that_is_given_the_strides_of_a_view(x: torch.Tensor) -> None:
    n = 1 << (len(x).bit_length() - 1)
    out = torch.zeros(n)
    with track_traffic() as traffic:
        gather_kernel[(1,)](x, out, x.stride(0), 0, BLOCK_SIZE=n)
    assert texts(traffic.out_of_bounds) == []
    assert torch.equal(out, x[:n])
    assert traffic.launches[0].arguments["x_ptr"].load_bytes == 4 * n


def test_both_faults_of_a_view_are_told_apart() -> None:
    with track_traffic() as traffic:
        gather_kernel[(1,)](torch.arange(9.0).view(3, 3)[:, 0], torch.zeros(16), 1, 0, BLOCK_SIZE=16)
    assert [(one.index, one.lanes, one.n_elements, one.strides) for one in traffic.out_of_bounds] == [
        (7, 9, 7, ()),
        (1, 4, 0, (3,)),
    ]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_a_sum_over_masked_lanes_without_other_is_seen(dtype) -> None:
    x, out = torch.ones(16, 16).to(dtype), torch.zeros(16, 16)
    found = {}
    for kernel in (sum_kernel, sum_after_where_kernel, dot_kernel):
        with track_traffic() as traffic:
            kernel[(1,)](x, out, 13, BLOCK_SIZE=16)
        found[kernel.__name__] = [launch.undefined for launch in traffic.launches if launch.n_undefined]
    assert found["sum_after_where_kernel"] == []
    (text,) = found["sum_kernel"]
    assert (
        text == "kernel sum_kernel, program (0, 0, 0): a reduction takes masked lanes that were loaded without other="
    )
    assert "tl.dot takes masked lanes" in found["dot_kernel"][0]
    # NaN that was loaded is no such lane.
    with track_traffic() as traffic:
        sum_kernel[(1,)](torch.full((16,), float("nan")), out, 16, BLOCK_SIZE=16)
    assert traffic.launches[0].n_undefined == 0
