"""Lab 12: what is true of SwiGLU and its gradients, and what the usual mistakes look like."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional as F

from labkit.compare import inputs_untouched
from labkit.exercises.lab12.shapes import Graded, dout_of, dtype_of
from labkit.exercises.lab12.swiglu import LARGE
from labkit.oracles.calls import as_call
from labkit.oracles.hints import once
from labkit.oracles.kernels import SAFE, at_full_size, compiled, moved
from labkit.oracles.lab12.close import (
    DOUT_HINT,
    FILLED_HINT,
    LAID_OUT_HINT,
    ROUNDED,
    TAKES_FLOAT32,
    computed_in_float32,
    dout_in_words,
    fills_first,
    keeps_at_most,
    laid_out_like_dout,
    near,
    of_autograd,
    only_the_beginning,
    takes_dout_as_contiguous,
)
from labkit.spec import CaseRun, Hint, Oracle, Tolerance


@once
def expected(run: CaseRun[Graded]) -> dict:
    """By PyTorch in float64, rounded at the end. What is kept is bounded by a property."""
    gate, up = (run.tree[name].double().requires_grad_() for name in ("gate", "up"))
    out = F.silu(gate) * up
    dgate, dup = torch.autograd.grad(out, (gate, up), dout_of(run.case, run.tree).double())
    tensors = {"out": out.detach(), "dgate": dgate, "dup": dup}
    return {**{name: one.to(dtype_of(run.case)) for name, one in tensors.items()}, "kept_bytes": 0}


def tolerances(run: CaseRun[Graded]) -> dict[str, Tolerance]:
    """float32 inside and rounded once; how many elements may be off by that much is a property."""
    eps = torch.finfo(dtype_of(run.case)).eps
    close = Tolerance(rtol=max(2 * eps, 2e-5), atol=max(2 * eps, 1e-5))
    kept = Tolerance(atol=float("inf"), check_dtype=False)
    return {"out": close, "dgate": close, "dup": close, "kept_bytes": kept}


def nearly(run: CaseRun[Graded]) -> bool:
    """Everything is off by a few roundings of float16 at the most."""
    names = ("out", "dgate", "dup")
    return run.case.dtype == "float16" and all(
        torch.allclose(run.got[name].double(), run.expected[name].double(), rtol=0.02, atol=0.02) for name in names
    )


def parts(run: CaseRun[Graded]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """gate, up, dout and sigmoid(gate), in float64."""
    gate, up = (run.tree[name].double() for name in ("gate", "up"))
    return gate, up, dout_of(run.case, run.tree).double(), torch.sigmoid(gate)


def swapped(run: CaseRun[Graded]) -> bool:
    gate, up, _, _ = parts(run)
    return near(run.case, run.got["out"], F.silu(up) * gate)


def sigmoid_alone(run: CaseRun[Graded]) -> bool:
    _, up, _, sigmoid = parts(run)
    return near(run.case, run.got["out"], sigmoid * up)


def sign_of_the_exponent(run: CaseRun[Graded]) -> bool:
    gate, up, _, _ = parts(run)
    return near(run.case, run.got["out"], gate * torch.sigmoid(-gate) * up)


def derivative_in_halves(run: CaseRun[Graded]) -> bool:
    gate, up, dout, sigmoid = parts(run)
    halves = (sigmoid, gate * sigmoid * (1 - sigmoid), sigmoid * (1 - sigmoid))
    return any(near(run.case, run.got["dgate"], dout * up * half) for half in halves)


def up_without_activation(run: CaseRun[Graded]) -> bool:
    gate, _, dout, sigmoid = parts(run)
    return any(near(run.case, run.got["dup"], dout * wrong) for wrong in (gate, sigmoid))


def gate_without_up(run: CaseRun[Graded]) -> bool:
    gate, _, dout, sigmoid = parts(run)
    return near(run.case, run.got["dgate"], dout * sigmoid * (1 + gate * (1 - sigmoid)))


def gradients_swapped(run: CaseRun[Graded]) -> bool:
    right = run.expected
    return near(run.case, run.got["dgate"], right["dup"]) and near(run.case, run.got["dup"], right["dgate"])


def without_dout(run: CaseRun[Graded]) -> bool:
    gate, up, _, sigmoid = parts(run)
    dgate = up * sigmoid * (1 + gate * (1 - sigmoid))
    return near(run.case, run.got["dgate"], dgate) or near(run.case, run.got["dup"], gate * sigmoid)


def another_activation(run: CaseRun[Graded]) -> bool:
    gate, up, _, _ = parts(run)
    others = (F.relu(gate), F.gelu(gate), F.gelu(gate, approximate="tanh"), gate * torch.sigmoid(1.702 * gate))
    return any(near(run.case, run.got["out"], other * up) for other in (*others, torch.tanh(gate)))


def added(run: CaseRun[Graded]) -> bool:
    gate, up, _, _ = parts(run)
    return near(run.case, run.got["out"], F.silu(gate) + up)


def only_wrong(name: str) -> Callable[[CaseRun[Graded]], bool]:
    """Of the three tensors, this one alone is not right."""
    others = {"out", "dgate", "dup"} - {name}
    return lambda run: (
        not near(run.case, run.got[name], run.expected[name])
        and all(near(run.case, run.got[other], run.expected[other]) for other in others)
    )


def ends_early(run: CaseRun[Graded]) -> bool:
    right = run.expected
    return any(only_the_beginning(run.case, run.got[name], right[name]) for name in ("out", "dgate", "dup"))


def overflows(run: CaseRun[Graded]) -> bool:
    """NaN or infinity where the gate is large, and nowhere else."""
    large = run.tree["gate"].double() >= LARGE
    return any(torch.equal(~run.got[name].isfinite(), large) for name in ("out", "dgate", "dup"))


def gate_for_up(run: CaseRun[Graded]) -> bool:
    gate, *_ = parts(run)
    return near(run.case, run.got["out"], F.silu(gate) * gate)


def one_tensor_for_both(run: CaseRun[Graded]) -> bool:
    """Both gradients are that of one input."""
    dgate, dup = run.got["dgate"], run.got["dup"]
    return torch.equal(dgate, dup) and any(near(run.case, dgate, run.expected[name]) for name in ("dgate", "dup"))


def gradients_are_wrong(run: CaseRun[Graded]) -> bool:
    """The result is right, and neither gradient is."""
    return near(run.case, run.got["out"], run.expected["out"]) and not any(
        near(run.case, run.got[name], run.expected[name]) for name in ("dgate", "dup")
    )


def of_a_later_call(run: CaseRun[Graded]) -> bool:
    """The gradients are those of the call in between, whose arguments were the other way round."""
    between = expected(replace(run, tree={**run.tree, "gate": run.tree["up"], "up": run.tree["gate"]}))
    return all(near(run.case, run.got[name], between[name]) for name in ("dgate", "dup"))


SWIGLU = Oracle(
    id="12-swiglu",
    expect=expected,
    tolerance=tolerances,
    judge=(
        inputs_untouched,
        computed_in_float32("out", "dgate", "dup"),
        keeps_at_most(
            lambda case: 0,
            "Keep the two inputs and no third tensor: sigmoid(gate) costs nothing to compute again, while memory and "
            "its traffic cost.",
        ),
    ),
    budgets=(
        *SAFE,
        *moved(
            # Twice forward: two read and one written; backward: three read and two written.
            load=lambda run: 7 * run.case.n_bytes + run.case.copied_bytes,
            store=lambda run: 4 * run.case.n_bytes + run.case.copied_bytes,
            launches=3,
        ),
        *compiled(),
    ),
    full_size=at_full_size(most_programs=lambda run: run.case.n_rows * run.case.n_cols // 64),
    call=lambda run: as_call("swiglu", *(run.tree[name] for name in ("gate", "up"))) + dout_in_words(run.case),
    unusable=of_autograd("the gradients of gate and up"),
    errors=TAKES_FLOAT32,
    diagnose=(
        Hint(fills_first, FILLED_HINT),
        Hint(nearly, ROUNDED),
        Hint(lambda run: laid_out_like_dout(run, "dup"), LAID_OUT_HINT),
        Hint(lambda run: takes_dout_as_contiguous(run, "dup", expected), DOUT_HINT),
        Hint(
            gradients_swapped,
            "dgate and dup are swapped: `backward` returns the gradients in the order of forward's arguments.",
        ),
        Hint(one_tensor_for_both, "dgate and dup are one and the same tensor: make a tensor for each."),
        Hint(
            of_a_later_call,
            "These are the gradients with gate and up exchanged. Either the two changed places on the way through ctx, "
            "or they are kept on the class or in a global variable, where a later call, here one of swiglu(up, gate), "
            "replaces them. ctx belongs to one call.",
        ),
        Hint(
            overflows,
            "exp overflows where a gate is large, and inf / inf is no number: take tl.sigmoid(gate), or "
            "1 / (1 + tl.exp(-gate)).",
        ),
        Hint(
            without_dout,
            "A gradient lacks the factor dout: by the chain rule, the incoming gradient multiplies both derivatives.",
        ),
        Hint(
            ends_early,
            "The beginning is right and the rest is not: there are too few programs. Round up, with triton.cdiv.",
        ),
        Hint(swapped, "The activation is on the wrong input: silu(gate) * up."),
        Hint(gate_for_up, "silu(gate) is multiplied by gate, and not by up: look at what each load reads."),
        Hint(sigmoid_alone, "silu(x) is x * sigmoid(x): the factor x is missing."),
        Hint(
            sign_of_the_exponent,
            "That is x * sigmoid(-x) in silu's place: sigmoid(x) is 1 / (1 + exp(-x)), with a minus in the exponent.",
        ),
        Hint(
            derivative_in_halves,
            "The derivative of x * sigmoid(x) has two terms, by the product rule: s + x * s * (1 - s) with "
            "s = sigmoid(x).",
        ),
        Hint(gate_without_up, "dgate lacks the factor up: the activation was multiplied by it."),
        Hint(up_without_activation, "dup is dout times what up was multiplied by in the forward pass: silu(gate)."),
        Hint(another_activation, "That is another activation: silu(x) is x * sigmoid(x)."),
        Hint(added, "silu(gate) is multiplied by up, and not added to it."),
        Hint(
            only_wrong("dgate"),
            "The result and dup are right, and dgate is not. It is dout * up times the derivative of silu(gate), which "
            "is s + gate * s * (1 - s) with s = sigmoid(gate).",
        ),
        Hint(
            only_wrong("dup"),
            "The result and dgate are right, and dup is not: it is dout times silu(gate).",
        ),
        Hint(
            gradients_are_wrong,
            "The result is right, and neither gradient is. Both are made of dout, gate and s = sigmoid(gate), as in "
            "the forward pass: look at what the backward kernel loads, and at s.",
        ),
    ),
)
