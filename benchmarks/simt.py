"""How long `labkit.simt` takes to execute kernels on the CPU, with all counters and checks: CPU seconds, best of five.

The kernels are the tests' own (tests/simt/kernels/programs.cu). It measures this executor, never a GPU.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import torch

from grading.terminal import say, table
from labkit.simt import Kernels, compile_cuda

SOURCE = Path(__file__).resolve().parents[1] / "tests" / "simt" / "kernels" / "programs.cu"


def product(kernels: Kernels, n: int) -> Callable[[], object]:
    """A tiled product of n × n matrices."""
    a, b = torch.randn(2, n, n)
    c, tiles = torch.zeros(n, n), -(-n // 16)
    return lambda: kernels["tiled_product"].launch((tiles, tiles), (16, 16), a, b, c, n)


def transpose(kernels: Kernels) -> Callable[[], object]:
    """A transpose of 200 × 300 through padded tiles."""
    x, y = torch.randn(200, 300), torch.zeros(300, 200)
    return lambda: kernels["transpose"].launch((10, 7), (32, 8), x, y, 200, 300)


def softmax(kernels: Kernels) -> Callable[[], object]:
    """A softmax of 256 rows of 1,000."""
    x, y = torch.randn(256, 1000), torch.zeros(256, 1000)
    return lambda: kernels["softmax"].launch(256, 128, x, y, 1000)


def histogram(kernels: Kernels) -> Callable[[], object]:
    """A histogram of 100,000 numbers in 64 bins."""
    x, bins = torch.randint(64, (100_000,), dtype=torch.int32), torch.zeros(64, dtype=torch.int32)
    return lambda: kernels["histogram"].launch(64, 256, x, bins, 100_000)


def cpu_seconds(work: Callable[[], object]) -> float:
    """The least CPU time of five runs."""
    found = []
    for _ in range(5):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def main(argv: list[str]) -> dict:
    """Prints the table and returns it: seconds to compile, and milliseconds of CPU for each kernel."""
    argparse.ArgumentParser(prog="benchmarks simt", description=__doc__.splitlines()[0]).parse_args(argv)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    start = time.perf_counter()
    kernels = compile_cuda(SOURCE.read_text(encoding="utf-8"))
    compile_s = time.perf_counter() - start
    works = {
        "tiled product 64³": product(kernels, 64),
        "tiled product 250³": product(kernels, 250),
        "tiled product 256³": product(kernels, 256),
        "transpose 200 × 300": transpose(kernels),
        "softmax 256 × 1,000": softmax(kernels),
        "histogram of 100,000": histogram(kernels),
    }
    times_ms = {name: cpu_seconds(work) * 1e3 for name, work in works.items()}
    say(*table(("kernel", "CPU ms"), [(name, f"{value:.1f}") for name, value in times_ms.items()]))
    print(f"compiling {len(kernels)} kernels: {compile_s:.2f} s")
    return {"compile_s": compile_s, "cpu_ms": times_ms}
