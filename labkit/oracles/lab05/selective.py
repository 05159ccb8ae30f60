"""Lab 05: what is true of a selective checkpoint, and what the usual mistakes look like."""

from __future__ import annotations

from collections.abc import Callable

import torch

from labkit.compare import compare, inputs_untouched
from labkit.exercises.lab05.selective import PRODUCTS, Network, backward, forward, leaves_of, plain
from labkit.spec import CANNOT_TELL, Budget, CaseRun, Hint, KiB, Oracle, Tolerance

SLACK_BYTES = 192 * KiB
KEPT_TOO_MUCH = (
    "More is kept than the results of the products. Normalizations, activations and sums of single elements are cheap: "
    "let them be recomputed. So is dropout, which draws the same numbers again, because a checkpoint keeps the state "
    "of the generator."
)
N_INSIDE = 6
"""Tensors that the operations behind one product keep without a checkpoint, the gradients on the way included."""


def right_values(run: CaseRun) -> str | None:
    """Output and gradients are those of the plain network, whatever is kept."""
    leaves = leaves_of(run.tree, torch.device("cpu"))
    right = backward(forward(plain, run.case, leaves), leaves)
    # Norms of nearly constant rows enlarge what rounding there is.
    for name, of_largest in (("out", 1e-4), ("grads", 3e-3)):
        close = Tolerance(rtol=1e-3, of_largest=of_largest)
        if found := compare(right[name], run.got[name], close, name):
            return f"wrong {found.kind} at {found.path}: expected {found.expected}, got {found.got}"
    return None


def only_products_kept(run: CaseRun) -> str | None:
    """Whatever else is kept takes memory, and its FLOPs are hardly any."""
    others = sorted(set(run.got["kept"]) - set(PRODUCTS))
    return f"the policy also keeps the results of {', '.join(map(str, others[:4]))}" if others else None


def decides_always(run: CaseRun) -> str | None:
    """PyTorch takes whatever is no decision for one to recompute."""
    strange = run.got["strange"]
    return f"the policy also returned something of type {', '.join(map(str, strange[:4]))}" if strange else None


decides_always.hint = (
    "Return CheckpointPolicy.MUST_SAVE for the four products and CheckpointPolicy.PREFER_RECOMPUTE for all else, in "
    "every branch."
)


def too_much_kept(run: CaseRun[Network]) -> bool:
    """The products and something else, but not everything."""
    return bool(set(run.got["kept"]) - set(PRODUCTS) and products_of(run.case, run.got["kept"]) and run.got["dropped"])


def flops(run: CaseRun[Network]) -> float:
    """Of every product one forward and two backward, by its input and by its weight: none is computed again."""
    return 3 * run.case.n_products * run.case.product_flops


def kept_bytes(run: CaseRun[Network]) -> float:
    """The result of every product and the output of every block."""
    return (run.case.n_products + run.case.n_blocks) * run.case.tensor_bytes + SLACK_BYTES


def peak_bytes(run: CaseRun[Network]) -> float:
    """What is kept, the inside of one block while it is differentiated, and the gradients of the parameters."""
    inside = (N_INSIDE * len(run.case.products) + 6) * run.case.tensor_bytes
    return kept_bytes(run) + inside + 2 * run.case.parameter_bytes


def dropped(name: str) -> Callable[[CaseRun[Network]], object]:
    """A diagnosis: this product is recomputed, wherever there is one."""
    return lambda run: name in run.got["dropped"] if name in run.case.products else CANNOT_TELL


def products_of(case: Network, names: list[str]) -> set[str]:
    return set(names) & set(case.products)


SELECTIVE = Oracle(
    id="05-selective",
    judge=(inputs_untouched, right_values, decides_always, only_products_kept),
    call=lambda run: (
        f"your policy in {run.case.n_blocks} checkpointed blocks with the products {', '.join(run.case.products)}, "
        f"x of shape ({run.case.n_rows}, {run.case.width})"
    ),
    axis="products in other orders and combinations",
    budgets=(
        Budget(
            "flops",
            flops,
            "Matrix products were computed again: the policy lets some of them be dropped.",
        ),
        Budget(
            "saved_bytes",
            kept_bytes,
            KEPT_TOO_MUCH,
        ),
        Budget(
            "peak_bytes",
            peak_bytes,
            "The peak is higher than what is kept and the inside of one block.",
        ),
    ),
    diagnose=(
        Hint(
            lambda run: products_of(run.case, run.got["kept"]) == set() and len(run.got["kept"]) > 1,
            "The policy is upside down: it keeps what is cheap and recomputes the products.",
        ),
        Hint(
            lambda run: run.got["kept"] == [],
            "Nothing is kept. If the policy names the products, compare with overloads: op is "
            "torch.ops.aten.mm.default, which is not equal to torch.ops.aten.mm.",
        ),
        Hint(too_much_kept, KEPT_TOO_MUCH),
        *(
            Hint(
                dropped(name),
                f"The product {name} is recomputed. There are four: mm, addmm (a linear layer with a bias), bmm, and "
                "baddbmm.",
            )
            for name in PRODUCTS
        ),
        Hint(
            lambda run: run.got["dropped"] == [],
            "Everything is kept, as if there were no checkpoint: only the results of products should be.",
        ),
    ),
)
