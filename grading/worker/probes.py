"""Work whose figures are known, for meters that run beside a student's code: each is tried on it at a secret size.

The true figures are the supervisor's (`grading/supervisor/witness.py`). A driver that compiles begins with a reset of
the compiler, and so do the probes: what an answer compiled before is gone after one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch

Work = Callable[[], None]


def operations(n: int) -> Work:
    """n additions, and a product of n numbers with n."""
    start, row, column = torch.zeros(()), torch.zeros(1, n), torch.zeros(n, 1)

    def work() -> None:
        x = start
        for _ in range(n):
            x = x + 1
        torch.mm(row, column)

    return work


def compiles(n: int) -> Work:
    """Calls of two functions: one of n additions, a break and a product, called twice at each of n % 4 + 1 sizes, and
    one that has nothing to compile, called n % 3 + 1 times.
    """

    def broken(x: torch.Tensor) -> torch.Tensor:
        for _ in range(n):
            x = x + 1
        torch._dynamo.graph_break()
        return 2 * x

    def empty(x: torch.Tensor) -> int:
        return n

    def work() -> None:
        torch._dynamo.reset()
        compiled = torch.compile(broken, backend="eager", dynamic=False)
        for size in range(2, n % 4 + 3):
            for _ in range(2):
                compiled(torch.zeros(size))
        nothing = torch.compile(empty, backend="eager")
        for _ in range(n % 3 + 1):
            nothing(torch.zeros(2))

    return work


def kernels(n: int) -> Work:
    """n % 3 + 1 products of n × n matrices, each followed by an elementwise chain."""

    def chain(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        for _ in range(n % 3 + 1):
            x = torch.relu(torch.mm(x, weight)) + 1
        return x

    def work() -> None:
        torch._dynamo.reset()
        torch.compile(chain, dynamic=False)(torch.zeros(n, n), torch.zeros(n, n))

    return work


def kept(n: int) -> Work:
    """n % 3 + 2 products of n × n matrices, and behind them an elementwise chain, with a gradient."""

    def chain(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        for _ in range(n % 3 + 2):
            x = torch.mm(x, weight)
        return torch.sin(torch.sin(torch.sin(x)))

    def work() -> None:
        torch._dynamo.reset()
        x, weight = (torch.zeros(n, n, requires_grad=True) for _ in range(2))
        torch.compile(chain, dynamic=False)(x, weight)

    return work


PROBES: Mapping[str, Callable[[int], Work]] = {
    "ops": operations,
    "compile": compiles,
    "generated": kernels,
    "kept": kept,
}
"""By the meter's name: size -> what is then done under the meter."""
