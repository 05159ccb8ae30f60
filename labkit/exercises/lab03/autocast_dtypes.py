"""Lab 03: blocks of real models, written as lists of ops, in which autocast chooses the dtypes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from labkit.exercises.lab03.autocast_ops import Op
from labkit.spec import Answer, Case, Exercise, Tree


def ops_of(text: str) -> tuple[Op, ...]:
    """Ops from lines such as "h = layer_norm(x, g, b)"."""
    ops = []
    for line in text.strip().splitlines():
        result, _, call = line.strip().partition(" = ")
        function, _, inputs = call.rstrip(")").partition("(")
        ops.append(Op(result, function, tuple(inputs.split(", "))))
    return tuple(ops)


BLOCKS: dict[str, tuple[Op, ...]] = {
    "gpt": ops_of("""
        h = layer_norm(x, w_norm, b_norm)
        q = linear(h, w_q)
        k = linear(h, w_k)
        v = linear(h, w_v)
        k_t = transpose(k)
        scores = matmul(q, k_t)
        probs = softmax(scores)
        kept = dropout(probs)
        heads = matmul(kept, v)
        out = linear(heads, w_out)
        x_mid = add(x, out)
        h_mid = layer_norm(x_mid, w_norm, b_norm)
        up = linear(h_mid, w_up)
        act = gelu(up)
        down = linear(act, w_down)
        y = add(x_mid, down)
    """),
    "llama": ops_of("""
        squares = pow(x)
        variance = mean(squares)
        inverse = rsqrt(variance)
        normed = mul(x, inverse)
        h = mul(normed, w_norm)
        gate = linear(h, w_gate)
        up = linear(h, w_up)
        act = silu(gate)
        product = mul(act, up)
        down = linear(product, w_down)
        y = add(x, down)
        y_kept = add_(down, x)
    """),
    "head": ops_of("""
        e = embedding(index, w_table)
        logits = linear(e, w_out)
        average = mean(logits)
        peak = amax(logits)
        total = sum(logits)
        size = norm(logits)
        log_p = log_softmax(logits)
        loss = cross_entropy(logits)
        with_size = add(peak, size)
        kept = add_(average, loss)
        root = sqrt(peak)
        gap = mse_loss(logits, peak)
    """),
    "conv": ops_of("""
        c = conv1d(x, w_in)
        n = group_norm(c)
        a = silu(n)
        c_2 = conv1d(a, w_out)
        r = relu(c_2)
        joined = cat(r, x)
        grown = cat(r, c)
        gated = sigmoid(grown)
        s = softplus(c)
        f = float(c)
        back = linear(f, w_out)
        attended = attention(f, c, x)
    """),
    "double": ops_of("""
        m = matmul(d, d)
        p = softmax(m)
        r = relu(m)
        u = linear(x, w_in)
        mixed = mul(u, m)
        t = sum(m)
        f = float(m)
        u_2 = linear(f, w_in)
    """),
}

FAMILIES = {
    1: (
        *("layer_norm_of", "group_norm", "softmax", "log_softmax", "sum", "cumsum", "norm", "exp", "log", "pow"),
        *("rsqrt", "softplus", "relu", "gelu", "silu", "sigmoid", "tanh", "sqrt", "mean", "amax", "dropout"),
        *("transpose", "float"),
    ),
    2: ("linear", "matmul", "conv1d", "add", "mul", "cat", "where", "add_", "mse_loss"),
    3: ("attention",),
}
"""Functions by their number of inputs, for blocks that are drawn; "layer_norm_of" brings weight and bias itself."""


COMBINATIONS = {
    1: (("x",), ("w",), ("d",)),
    2: (("x", "x"), ("x", "w"), ("w", "x"), ("w", "w")),
    3: (("x", "x", "x"), ("x", "w", "x"), ("w", "w", "w")),
}
WITH_DOUBLE = (("x", "d"), ("d", "x"), ("w", "d"))
"""For what is not a matrix product: that of a double and another dtype has no kernel."""

EACH = tuple(
    Op(f"{function}_{'_'.join(inputs)}", function, inputs)
    for n_inputs, functions in FAMILIES.items()
    for function in functions
    if function != "layer_norm_of"
    for inputs in (
        *COMBINATIONS[n_inputs],
        *(WITH_DOUBLE if n_inputs == 2 and function not in ("linear", "matmul", "conv1d") else ()),
    )
)
"""Every function of FAMILIES, on all that its inputs may be."""


GIVEN = "names in `given` afterwards"


@dataclass(frozen=True)
class AutocastBlock(Case):
    """A block under autocast to `low`. kind: one of BLOCKS, "each": EACH, or "drawn": n_ops at random.

    x, weights: the dtypes of the activations that are given, and of everything else that is.
    """

    kind: str
    low: str = "float16"
    x: str = "float32"
    weights: str = "float32"
    n_ops: int = 0


def block_inputs(case: AutocastBlock, gen: torch.Generator) -> dict[str, Tree]:
    """ops: a list of {"result", "function", "inputs"}; given: a dtype's name for each tensor that no op makes."""
    ops = drawn(case.n_ops, gen) if case.kind == "drawn" else {**BLOCKS, "each": EACH}[case.kind]
    made = {op.result for op in ops}
    given = {name: case.x if name == "x" else case.weights for op in ops for name in op.inputs if name not in made}
    given |= {name: dtype for name, dtype in (("index", "int64"), ("d", "float64")) if name in given}
    return {"ops": [dict(op._asdict(), inputs=list(op.inputs)) for op in ops], "given": given}


def drawn(n_ops: int, gen: torch.Generator) -> tuple[Op, ...]:
    """Ops at random on two given tensors, the later results more often than the earlier."""
    names, ops = ["x", "w"], []
    for index in range(n_ops):
        n_inputs = (1, 1, 2, 2, 2, 3)[_below(6, gen)]
        function = FAMILIES[n_inputs][_below(len(FAMILIES[n_inputs]), gen)]
        inputs = [names[-1 - _below(min(len(names), 5), gen)] for _ in range(n_inputs)]
        if function == "layer_norm_of":
            function, inputs = "layer_norm", [*inputs, "w", "w"]
        ops.append(Op(f"t{index}", function, tuple(inputs)))
        names.append(f"t{index}")
    return tuple(ops)


def _below(n: int, gen: torch.Generator) -> int:
    return int(torch.randint(n, (), generator=gen))


def ops_in(tree: dict) -> list[Op]:
    return [Op(op["result"], op["function"], tuple(op["inputs"])) for op in tree["ops"]]


def given_in(tree: dict) -> dict[str, torch.dtype]:
    return {name: getattr(torch, dtype) for name, dtype in tree["given"].items()}


def drive_block(ans, case: AutocastBlock, tree: dict, stage) -> object:
    """The predicted dtypes by name of the result, as strings; GIVEN: the names of the given tensors, afterwards."""
    given = given_in(tree)
    found = ans.autocast_dtypes(ops_in(tree), given, getattr(torch, case.low))
    if not isinstance(found, Mapping):
        return found
    return {"dtypes": {name: _named(dtype) for name, dtype in found.items()}, GIVEN: ", ".join(map(str, given))}


def _named(dtype: object) -> str:
    """A dtype's name; of anything else, such as a name, what it is."""
    if isinstance(dtype, torch.dtype):
        return str(dtype).removeprefix("torch.")
    return f"no dtype but a {type(dtype).__name__}"


AUTOCAST_DTYPES = Exercise(
    id="03-autocast-dtypes",
    title="What autocast computes in which dtype",
    points=3,
    minutes=20,
    difficulty=2,
    answers=(Answer("autocast_dtypes"),),
    public=(
        AutocastBlock("gpt"),
        AutocastBlock("llama", low="bfloat16"),
        AutocastBlock("head"),
        AutocastBlock("conv", low="bfloat16"),
        AutocastBlock("double"),
        AutocastBlock("gpt", low="bfloat16", x="bfloat16"),
        AutocastBlock("llama", low="bfloat16", x="float16", weights="float16"),
        AutocastBlock("each", low="float16", x="bfloat16"),
    ),
    inputs=block_inputs,
    drive=drive_block,
    forbids=(
        "torch.autocast",
        "torch.amp.autocast",
        "torch.amp.autocast_mode.autocast",
        "torch.cuda.amp.autocast",
        "torch.cpu.amp.autocast",
        "torch.set_autocast_enabled",
    ),
)
