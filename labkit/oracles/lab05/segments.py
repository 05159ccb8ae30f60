"""Lab 05: what is true of a chain cut into segments, and what the usual mistakes look like."""

from __future__ import annotations

import math
from typing import Any

import torch

from labkit.compare import compare, inputs_untouched
from labkit.exercises.lab05.segments import Depth, run_layers
from labkit.oracles.calls import as_call
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Oracle, Tolerance


def one_by_one(layers: list, x: torch.Tensor, n_segments: int, checkpoint: object) -> torch.Tensor:
    """All layers, by PyTorch's autograd alone."""
    for layer in layers:
        x = layer(x)
    return x


def plain_run(run: CaseRun[Depth]) -> dict[str, Any]:
    """Values and gradients without a checkpoint."""
    return run_layers(one_by_one, run.case, run.tree, torch.device("cpu"))


def peak(case: Depth, n_segments: float) -> float:
    """k + c L / k, in units of a layer's output."""
    return n_segments + case.cost * case.n_layers / n_segments


def best(case: Depth) -> int:
    """The smallest of the best numbers of segments."""
    return min(range(1, case.n_layers + 1), key=lambda n_segments: peak(case, n_segments))


def smallest_peak(run: CaseRun) -> str | None:
    """Another number may be as good as ours."""
    case, k = run.case, run.got["n_segments"]
    if isinstance(k, bool) or not isinstance(k, int):
        return f"best_segments should return a whole number (an int), but it returned {k!r}"
    if not 1 <= k <= case.n_layers:
        return f"{k} segments of {case.n_layers} layers: there are at least 1 and at most {case.n_layers}"
    if peak(case, k) > peak(case, best(case)) * (1 + 1e-9):
        return f"{k} segments take {peak(case, k):.6g} outputs, {best(case)} would take {peak(case, best(case)):.6g}"
    return None


def right_gradients(run: CaseRun) -> str | None:
    """Values and gradients of the run in segments."""
    right = plain_run(run)
    # Rounding elsewhere moves gradients of 64 layers by 3e-5 of the largest element.
    close = Tolerance(rtol=1e-4, of_largest=2e-4)
    for name in ("out", "grads"):
        if found := compare(right[name], run.got[name], close, name):
            return f"run_in_segments: wrong {found.kind} at {found.path}: expected {found.expected}, got {found.got}"
    return None


def all_parts(got: dict) -> list[list[int]]:
    """The segments, and as one more the layers outside of any."""
    return got["segments"] + [got["outside"]] * bool(got["outside"])


def well_cut(run: CaseRun) -> str | None:
    """At most n_segments parts, none longer than the layers by the segments, rounded up; nothing runs three times."""
    case, segments = run.case, all_parts(run.got)
    if max(run.got["runs"].tolist()) > 2:
        return f"a layer ran {max(run.got['runs'].tolist())} times; twice is all that one checkpoint needs"
    if len(segments) > case.n_segments:
        return f"{len(segments)} segments, where {case.n_segments} were asked for"
    longest, allowed = max(map(len, segments)), math.ceil(case.n_layers / case.n_segments)
    if longest > allowed:
        return f"the longest segment has {longest} layers, {case.n_segments} equal ones have at most {allowed}"
    if case.n_segments > 1 and min(run.got["runs"].tolist()[:-allowed]) < 2:
        return "a layer before the last segment ran only once: it was not inside a checkpoint"
    return None


def rounded(k: object, value: float, n_layers: int) -> bool:
    """k is this value, rounded in whichever way (also one more than a whole value) and moved into 1 to n_layers."""
    return k in (min(max(near, 1), n_layers) for near in (math.floor(value), math.floor(value) + 1))


def wrong_number(when) -> Any:
    """A diagnosis of best_segments, where it is wrong."""
    return lambda run: smallest_peak(run) is not None and when(run.case, run.got["n_segments"])


def shape_of_all(got: dict) -> list[int]:
    return [len(part) for part in all_parts(got)]


def each_from_the_input(run: CaseRun[Depth]) -> bool:
    """The output is that of the last segment alone, applied to x."""
    out = run.tree["x"]
    for index in all_parts(run.got)[-1]:
        out = out + torch.tanh(out @ run.tree["weights"][index])
    return len(all_parts(run.got)) > 1 and torch.allclose(out, run.got["out"], atol=1e-4)


def each_from_the_first_layer(run: CaseRun[Depth]) -> object:
    """All segments begin with layer 0, of which there is more than one."""
    if len(all_parts(run.got)) == 1:
        return CANNOT_TELL
    return all(part[:1] == [0] for part in all_parts(run.got))


def as_many_layers_as_segments(run: CaseRun[Depth]) -> object:
    """All segments but the last have n_segments layers, which is another length than it should be."""
    lengths, n_segments = shape_of_all(run.got), run.case.n_segments
    if len(lengths) <= n_segments and max(lengths) <= math.ceil(run.case.n_layers / n_segments):
        return CANNOT_TELL
    full = [n_segments] * (run.case.n_layers // n_segments)
    return lengths in (full, [*full, run.case.n_layers % n_segments])


def cut_off_from_x(run: CaseRun[Depth]) -> bool:
    """x got no gradient, and the last layers did."""
    return run.got["grads"]["x"] is None and run.got["grads"]["weights"][-1] is not None


def too_many_outside(run: CaseRun[Depth]) -> bool:
    """Some layers have a checkpoint and are cut well; the others are more than one segment has, and no mere rest."""
    n_layers, n_segments, n_outside = run.case.n_layers, run.case.n_segments, len(run.got["outside"])
    within = max(map(len, run.got["segments"]), default=0)
    rest = n_layers - (n_segments - 1) * (n_layers // n_segments)
    return 0 < within <= math.ceil(n_layers / n_segments) < n_outside and n_outside != rest


OUT_OF_RANGE = (
    "There cannot be more segments than layers, nor fewer than one. Where the root lies beyond, the end of the range "
    "is best."
)

SEGMENTS = Oracle(
    id="05-segments",
    judge=(inputs_untouched, smallest_peak, right_gradients, well_cut),
    call=lambda run: (
        f"{as_call('best_segments', run.case.n_layers, run.case.cost)}; "
        f"run_in_segments({run.case.n_layers} layers, x, n_segments={run.case.n_segments}, checkpoint)"
    ),
    axis="numbers of layers, costs and segments, costs far below 1 and beyond the number of layers among them",
    errors={
        "ZeroDivisionError": OUT_OF_RANGE,
        "is not a Module subclass": "`layers` are functions of a tensor, and need not be modules, which nn.Sequential "
        "asks for. Call them one after the other.",
    },
    diagnose=(
        Hint(
            wrong_number(lambda case, k: not isinstance(k, int)),
            "A number of segments is a whole number. Compare k + cL/k of the two whole numbers next to the root.",
        ),
        Hint(
            wrong_number(lambda case, k: k > case.n_layers or k < 1),
            OUT_OF_RANGE,
        ),
        Hint(
            wrong_number(lambda case, k: k == 1),
            "One segment saves nothing: while it is recomputed all of its layers are held at once, as if there were no "
            "checkpoint.",
        ),
        Hint(
            wrong_number(lambda case, k: k == case.n_layers),
            "A checkpoint around every layer keeps one output for each of them. Fewer segments keep fewer.",
        ),
        Hint(
            wrong_number(lambda case, k: rounded(k, math.sqrt(case.cost * case.n_layers), case.n_layers)),
            "Nearly: this is the other neighbour of the root of cL. The root is rarely whole, and rounding it may miss "
            "the better neighbour; so may L // k. Compute k + cL/k for both, with L/k as it is.",
        ),
        Hint(
            wrong_number(lambda case, k: rounded(k, math.sqrt(case.n_layers), case.n_layers) and case.cost != 1),
            "That is the root of L, which is right only for c = 1. The inside of a layer counts c: set the derivative "
            "of k + cL/k to zero.",
        ),
        Hint(
            wrong_number(lambda case, k: rounded(k, math.sqrt(case.n_layers / case.cost), case.n_layers)),
            "That is the number of layers in a segment, L/k. What is asked for is k.",
        ),
        Hint(
            wrong_number(lambda case, k: True),
            "Write the peak as k + cL/k, with L/k as it is also where k does not divide L. Set the derivative by k to "
            "zero, and choose between the two whole numbers next to the root.",
        ),
        Hint(
            lambda run: max(run.got["runs"].tolist()) > 2 and min(run.got["runs"].tolist()) == 1,
            "In backward other layers ran than in forward: a lambda made in a loop looks its variable up when it is "
            "called, and then the loop is over. Bind it: functools.partial, or a default value.",
        ),
        Hint(
            each_from_the_first_layer,
            "Every segment began at the first layer: each runs its own layers only, from its first to its last.",
        ),
        Hint(
            lambda run: sum(shape_of_all(run.got)) > run.case.n_layers if len(all_parts(run.got)) > 1 else CANNOT_TELL,
            "Two segments have a layer in common: the next one begins behind the last layer of the one before.",
        ),
        Hint(
            lambda run: max(run.got["runs"].tolist()) > 2,
            "A layer ran more than twice. A checkpoint inside a checkpoint runs its layers once more for each level.",
        ),
        Hint(
            lambda run: 0 in run.got["runs"].tolist(),
            "Some layers never ran: n_segments rarely divides the number of layers, and the rest belongs to a segment "
            "too.",
        ),
        Hint(
            lambda run: not any(run.got["segments"]) and len(all_parts(run.got)) > 1 - (run.case.n_segments > 1),
            "No layer ran inside the `checkpoint` that the function is given: write x = checkpoint(fn, x), where fn "
            "runs the layers of one segment.",
        ),
        Hint(
            each_from_the_input,
            "Every segment began with the first x: each takes the output of the one before.",
        ),
        Hint(
            cut_off_from_x,
            "The gradient does not get from one segment to the one before, and so not to x: something between them is "
            "detached. Hand the output of a segment on as it is.",
        ),
        Hint(
            lambda run: run.got["segments"] == [list(range(run.case.n_layers))] and run.case.n_segments > 1,
            "All layers are in one segment, which saves nothing.",
        ),
        Hint(
            as_many_layers_as_segments,
            "n_segments layers are in each segment. It is the number of segments that is given, not their length.",
        ),
        Hint(
            lambda run: len(all_parts(run.got)) > run.case.n_segments and max(shape_of_all(run.got)) == 1,
            "Every layer has a checkpoint of its own. Put the layers of a segment into one function, and that one into "
            "checkpoint.",
        ),
        Hint(
            lambda run: len(all_parts(run.got)) > run.case.n_segments,
            "L // k layers in each leave a rest, which became a segment more. Cut at round(i * L / k) for i from 0 to "
            "k.",
        ),
        Hint(
            too_many_outside,
            "Too many layers ran outside of `checkpoint`. Only those of the last segment may do without.",
        ),
        Hint(
            lambda run: max(shape_of_all(run.got)) > math.ceil(run.case.n_layers / run.case.n_segments),
            "The last segment took all of the rest, and the longest one decides the peak. Cut at round(i * L / k) for "
            "i from 0 to k.",
        ),
        Hint(
            lambda run: bool((run.got["runs"] < 2).any()),
            "Not every segment went through checkpoint.",
        ),
    ),
)
