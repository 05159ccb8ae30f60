"""Lab 17: what the tensors of the student's own MLP are on four ranks, and its gradients. Nothing is judged.

The class is run on simulated ranks. Which word describes a tensor is found from its values, as in `lab17_words`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from labkit.material.lab17 import mlp_inputs
from labkit.material.lab17_words import Word, word_of
from labkit.ranks import Comm, run_ranks

N_RANKS = 4
CUT_ALONG = {"w_in": 0, "b_in": 0, "w_out": 1}
"""The dimension along which a parameter is cut; the others are not."""
REDUCED = "given to all-reduce"
TENSORS = ("x", "w_in", "b_in", "w_out", REDUCED, "b_out", "y")
NEITHER, NOTHING = Word("none of these"), Word("nothing")
CLOSE = 1e-4
"""float32, sums of up to 256 terms of about 1."""


@dataclass(frozen=True)
class MlpFlow:
    """By tensor its word and that of its gradient; by rank the gradients that it has, and those that it should have.

    MlpFlow({"x": Word("replicated")}, {"x": Word("partial")}, [{"x": None}], [{"x": None}])
    """

    forward: dict[str, Word]
    backward: dict[str, Word]
    ranks: list[dict[str, Tensor | None]]
    reference: list[dict[str, Tensor | None]]


Held = dict[str, tuple[Tensor | None, Tensor | None]]
"""By tensor what a rank has of it and of its gradient; None where it has nothing."""


def flow_of_mlp(layer: Callable[..., nn.Module], n_ranks: int = N_RANKS) -> MlpFlow:
    """A forward and a backward pass of layer(w_in, b_in, w_out, b_out, comm), beside the same in one process.

    "given to all-reduce" is the first tensor that a rank gave to it: in the forward pass, and in the backward pass.
    """
    ranks: list[Held] = run_ranks(partial(_on_rank, layer=layer), n_ranks)
    whole = _in_one_process()
    forward, backward = ({name: _word(ranks, whole, name, which) for name in TENSORS} for which in (0, 1))
    compared = [name for name in TENSORS if name not in (REDUCED, "y")]
    return MlpFlow(
        forward,
        backward,
        [{name: held[name][1] for name in compared} for held in ranks],
        [{name: _part(name, whole[name][1], rank, n_ranks) for name in compared} for rank in range(n_ranks)],
    )


class _Watched:
    """A communicator that notes what is given to `all_reduce`, before it is changed."""

    def __init__(self, comm: Comm) -> None:
        self._comm = comm
        self.given: list[Tensor] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._comm, name)

    def all_reduce(self, tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
        self.given.append(tensor.detach().clone())
        return self._comm.all_reduce(tensor, *args, **kwargs)


def _on_rank(comm: Comm, layer: Callable[..., nn.Module]) -> Held:
    weights, x, y_grad = mlp_inputs()
    watched = _Watched(comm)
    mine = layer(*weights, watched)
    y = mine(x)
    n_forward = len(watched.given)
    y.backward(y_grad)
    held: Held = {"x": (x.detach(), x.grad), "y": (y.detach(), y_grad)}
    for name in ("w_in", "b_in", "w_out", "b_out"):
        one = getattr(mine, name, None)
        held[name] = (None, None) if one is None else (one.detach(), one.grad)
    first, later = watched.given[:n_forward], watched.given[n_forward:]
    held[REDUCED] = (first[0] if first else None, later[0] if later else None)
    return held


def _in_one_process() -> Held:
    weights, x, y_grad = mlp_inputs()
    w_in, b_in, w_out, b_out = (one.requires_grad_() for one in weights)
    product = F.linear(F.gelu(F.linear(x, w_in, b_in)), w_out)
    y = product + b_out
    y.backward(y_grad)
    held = {"x": x, "w_in": w_in, "b_in": b_in, "w_out": w_out, "b_out": b_out}
    values: Held = {name: (one.detach(), one.grad) for name, one in held.items()}
    return values | {REDUCED: (product.detach(), x.grad), "y": (y.detach(), y_grad)}


def _word(ranks: Sequence[Held], whole: Held, name: str, which: int) -> Word:
    """Of the tensor (which = 0) or of its gradient (1)."""
    parts = [held[name][which] for held in ranks]
    if any(part is None for part in parts):
        return NOTHING
    wanted = whole[name][which]
    if any(part.dim() != wanted.dim() for part in parts):
        return NEITHER
    try:
        return word_of(parts, wanted, CLOSE)
    except (ValueError, RuntimeError):  # parts that do not fit together raise a RuntimeError
        return NEITHER


def _part(name: str, whole: Tensor, rank: int, n_ranks: int) -> Tensor:
    return whole.tensor_split(n_ranks, CUT_ALONG[name])[rank] if name in CUT_ALONG else whole
