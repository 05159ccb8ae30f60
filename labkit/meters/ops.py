"""Count the operations that PyTorch dispatches in a block, and the FLOPs of those that multiply matrices.

It sees nothing that happens inside an operator, and elementwise work counts no FLOPs: its cost is the bytes it moves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache

import torch

# Here and not where they are needed: a memory meter that is open then would count what is loaded as the program's own.
from torch.utils.flop_counter import flop_registry, sdpa_backward_flop_count, sdpa_flop_count

from labkit.measures import add_to
from labkit.meters.dispatch import Meter


class Operations(Meter):
    """Counts every operation that reaches the dispatcher.

    A `_foreach_` operation counts once, as the few kernels that a GPU makes of it; on a list of several dtypes, which
    is a loop over its tensors on every device, once for each tensor.

    A product of m × k with k × n is 2 m k n FLOPs, and attention counts every score, also those that a causal mask
    hides: the convention of `torch.utils.flop_counter`, which leaves out the attention operators of the CPU, products
    that add in place, and products with a vector. Here they count.
    """

    def __init__(self) -> None:
        super().__init__()
        self.count_by_op: Counter[str] = Counter()
        self.flops_by_op: Counter[str] = Counter()

    @property
    def dispatches(self) -> int:
        return self.count_by_op.total()

    @property
    def flops(self) -> int:
        return self.flops_by_op.total()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        packet, kwargs = func._overloadpacket, kwargs or {}
        count_flops = _flop_formulas().get(packet)
        if count_flops is None:
            result = self.decomposed(func, args, kwargs)
            if result is not NotImplemented:
                return result
        result = func(*args, **kwargs)
        name = _name_of(packet)
        self.count_by_op[name] += _n_loops(args) if name.startswith("_foreach_") else 1
        if count_flops is not None:
            self.flops_by_op[name] += count_flops(*args, **kwargs, out_val=result)
        return result


@cache
def _name_of(packet: object) -> str:
    return str(packet).removeprefix("aten.")


def _n_loops(lists: Sequence[object]) -> int:
    """How many operations one on lists of tensors comes to: one, or one a tensor where a list mixes dtypes."""
    tensors = [one for one in lists if isinstance(one, (list, tuple)) and one and isinstance(one[0], torch.Tensor)]
    mixed = any(len({(tensor.dtype, tensor.device) for tensor in one}) > 1 for one in tensors)
    return len(tensors[0]) if mixed else 1


@cache
def _flop_formulas() -> dict[object, Callable[..., int]]:
    def heads_as_of(query, *shared) -> list[tuple[int, ...]]:
        """Shapes with a head for each of the query's: a shared head is multiplied with each (PyTorch 2.11 refuses)."""
        return [(*one.shape[:-3], query.shape[-3], *one.shape[-2:]) for one in shared]

    def forward(query, key, value, *others, out_val=None, **settings) -> int:
        return sdpa_flop_count(query.shape, *heads_as_of(query, key, value))

    def backward(grad_out, query, key, value, *others, out_val=None, **settings) -> int:
        return sdpa_backward_flop_count(grad_out.shape, query.shape, *heads_as_of(query, key, value))

    def product(a, b, *others, out_val=None, **settings) -> int:
        """a @ b: every element of `a` meets a row of `b`, or an element where that is a vector."""
        return 2 * a.numel() * (b.shape[-1] if b.dim() > 1 else 1)

    def added(base, a, b, *others, out_val=None, **settings) -> int:
        return product(a, b)

    aten = torch.ops.aten
    return {
        aten._scaled_dot_product_flash_attention_for_cpu: forward,
        aten._scaled_dot_product_flash_attention_for_cpu_backward: backward,
        **flop_registry,
        # Some are in the registry, too: there they make trees of shapes of their arguments, which takes longer.
        **dict.fromkeys((aten.mm, aten.bmm, aten.mv, aten.dot, aten.vdot), product),
        **dict.fromkeys((aten.addmm, aten.addmm_, aten.baddbmm, aten.baddbmm_), added),
        **dict.fromkeys((aten.addbmm, aten.addbmm_, aten.addmv, aten.addmv_), added),
    }


def flop_formula(packet: object) -> Callable[..., int] | None:
    """What counts an operation's FLOPs from its arguments and, as `out_val`, its result; None where it has none."""
    return _flop_formulas().get(packet)


@contextmanager
def track_ops() -> Iterator[Operations]:
    """Count the operations of a block: `dispatches`, `flops`, and both by name in `count_by_op` and `flops_by_op`."""
    with Operations() as operations:
        yield operations


@contextmanager
def count_operations(measured: dict[str, float], held: dict[str, Sequence[str]] | None = None) -> Iterator[None]:
    """Add the numbers of dispatched operations and of FLOPs to `measured["dispatches"]` and `measured["flops"]`."""
    operations = Operations()
    try:
        with operations:
            yield
    finally:
        add_to(measured, "dispatches", operations.dispatches)
        add_to(measured, "flops", operations.flops)
