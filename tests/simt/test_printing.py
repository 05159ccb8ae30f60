"""printf of device code prints what C's printf prints, lane after lane."""

from __future__ import annotations

import pytest
import torch

from labkit.simt import compile_cuda
from labkit.simt.printing import MOST_LINES, formatted
from tests.simt.harness import require_nvrtc


@pytest.fixture(autouse=True)
def nvrtc() -> None:
    require_nvrtc()


def printed(capsys: pytest.CaptureFixture[str], statement: str, grid: int = 1, block: int = 1) -> str:
    kernel = compile_cuda(f"__global__ void k(const float* x, int n) {{ {statement} }}")["k"]
    capsys.readouterr()
    kernel.launch(grid, block, torch.tensor([0.5, -3.25]), 7)
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (r'printf("n is %d of %5d|%-4d|%04x %%\n", n, n, n, 255)', "n is 7 of     7|7   |00ff %\n"),
        (r'printf("%f %8.2f %g %.3e\n", x[0], x[1], 1e20, x[1])', "0.500000    -3.25 1e+20 -3.250e+00\n"),
        (r'printf("%lld %llu %zu\n", -5ll, 1ull << 63, sizeof(int))', "-5 9223372036854775808 4\n"),
        (r'printf("%s is %c, %u\n", n > 3 ? "large" : "small", 65, -1)', "large is A, 4294967295\n"),
        (r'printf("%*d|\n", 5, n)', "    7|\n"),
        (r'printf("%-*.*f|%.*e\n", 9, 2, x[1], 3, x[0])', "-3.25    |5.000e-01\n"),
        (r'printf("%*d|\n", -5, n)', "7    |\n"),
        (r'printf("nothing")', "nothing"),
    ],
)
def test_each_conversion_is_that_of_c(capsys, call: str, expected: str) -> None:
    assert printed(capsys, call + ";") == expected


def test_lanes_print_in_their_order_and_masked_ones_do_not(capsys) -> None:
    text = printed(capsys, r'if (threadIdx.x % 16 == 3) printf("%d,%d ", blockIdx.x, threadIdx.x);', 2, 32)
    assert text == "0,3 0,19 1,3 1,19 "


def test_of_very_many_lines_the_first_are_printed(capsys) -> None:
    lines = printed(capsys, r'printf("%d\n", blockIdx.x);', 80, 32).splitlines()
    assert len(lines) == MOST_LINES + 1 and lines[-1] == "(only the first 1,000 calls of printf are shown)"


def test_a_width_without_measure_is_cut(capsys) -> None:
    assert len(printed(capsys, r'printf("%999999999d%*d%.999999999f", n, 1 << 30, n, x[0]);')) < 1000


def test_a_format_without_its_arguments_touches_nothing_else() -> None:
    assert formatted("%d %f %s", b"", lambda address: f"<{address}>") == "0 0.000000 <0>"
