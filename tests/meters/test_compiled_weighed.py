"""What the compiler made of code that never runs, or that moves little, does not count."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("triton", reason="Triton is not installed; it runs the kernels")

from labkit import interpreter
from labkit.meters.compiled import compile_report, compiled_figures
from labkit.meters.compiled import weighed as weighing
from labkit.meters.compiled.weighed import weighed
from labkit.meters.launches import KernelLaunch, listening
from labkit.meters.launches_work import LaunchWork
from labkit.meters.traffic import track_traffic
from tests.kernels import partly

interpreter.enable()


def launched(kernel, n_programs: int, *args, **kwargs) -> KernelLaunch:
    found: list[KernelLaunch] = []
    with listening(found.append):
        kernel[(n_programs,)](*args, **kwargs)
    return found[0]


def copied(least: int, n_programs: int = 4, block: int = 128) -> KernelLaunch:
    x = torch.arange(16384.0)
    return launched(partly.copy_kernel, n_programs, x, torch.empty(16384), least, BLOCK=block)


def test_a_launch_is_told_what_it_did_where() -> None:
    work = copied(3).work
    (few, lot) = sorted(work.loads, key=lambda site: site[1][1], reverse=True)
    # One line of a helper, which was called from two.
    assert few[0] == lot[0] and few[1] != lot[1]
    assert (work.loads[few], work.loads[lot]) == (3 * 4 * 128, 4 * 1024) and sum(work.stores.values()) == 5632
    assert not work.products


def test_it_does_so_under_another_meter_and_above_one() -> None:
    with track_traffic() as traffic:
        inside = copied(3).work
    found: list[KernelLaunch] = []
    with listening(found.append), track_traffic() as again:
        copied(3)
    assert inside == found[0].work == copied(3).work
    assert traffic.load_bytes == again.load_bytes == sum(inside.loads.values())


FROM_3_8 = pytest.mark.skipif(not weighing._has_columns(), reason="before Triton 3.8, a helper's lines are one")


@FROM_3_8
@pytest.mark.parametrize(("least", "width"), [(0, 16), (1, 16), (3, 4), (4, 4)])
def test_nearly_all_bytes_count(least: int, width: int) -> None:
    """Of four programs one narrow one moves 4 % of the bytes, three move 27 %."""
    one = copied(least)
    static = compile_report(one.kernel, **one.arguments, **one.options).figures()["vector_width"]
    assert (static, compiled_figures([one], (90,))["vector_width"]) == (16, width)


def test_all_launches_of_a_kind_count_together() -> None:
    wide, narrow = copied(1, 1), copied(1, 2)
    assert compiled_figures([wide, narrow], (80,))["vector_width"] == 4


def test_products_count_where_they_run_on_matrix_units() -> None:
    a, out = torch.zeros(32, 32, dtype=torch.float16), torch.empty(4, 32, 32)
    figures = [
        compiled_figures([launched(partly.product_kernel, 4, a, a, out, n_on_units, N=32)], (80,))
        for n_on_units in (9, 3, 0)
    ]
    assert [one["matrix_flops"] for one in figures] == [4 * 2 * 32**3, 3 * 2 * 32**3, 0]
    assert (
        figures[0]["matrix_instructions"] == figures[1]["matrix_instructions"] > figures[2]["matrix_instructions"] == 0
    )


def test_what_cannot_be_found_counts_as_the_least() -> None:
    one = copied(3)
    report = compile_report(one.kernel, **one.arguments, **one.options)
    nowhere = LaunchWork()
    nowhere.loads[("elsewhere.py", 1, 0), None] = 100
    nowhere.products[("elsewhere.py", 2, 0), None] = 100
    figures = weighed(report, nowhere)
    assert (figures["vector_width"], figures["matrix_flops"]) == (4, 0)
    assert weighed(report, LaunchWork())["vector_width"] == 0
