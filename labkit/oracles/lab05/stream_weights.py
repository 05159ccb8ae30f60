"""Lab 05: what is true of layers whose weights come from the host, and what the usual mistakes look like."""

from __future__ import annotations

import functools
import math

import torch

from labkit.compare import compare, inputs_untouched
from labkit.exercises.lab05.stream_weights import Stack, layer, machine_of
from labkit.oracles.hints import once
from labkit.oracles.lab05.programs import Program, nothing_overlaps, program
from labkit.simdevice import Machine
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Oracle, Tolerance

CLOSE = Tolerance(atol=1e-5, rtol=1e-4)
MOST_TIME = 1.1
"""Times the best: copies and kernels side by side from the first layer on."""
N_PARAMETERS = 10**9
"""Any number will do: the tokens do not depend on it."""
EXACT_TO = 1e-6


def true_out(tree: dict) -> list[torch.Tensor]:
    """All weights at hand."""
    return [functools.reduce(lambda x, weight: layer(weight, x), tree["weights"], x) for x in tree["xs"]]


def device_limit_bytes(case: Stack) -> int:
    """Two layers; the micro-batches as given, before and after a layer, and two more of them in use."""
    return 2 * case.weight_bytes + (3 * case.n_batches + 2) * case.activation_bytes


def best_s(case: Stack) -> float:
    """The first copy, then the longer of copy and kernels for each layer, the kernels of the last."""
    copy_s = machine_of(case).copy_time_s(case.weight_bytes, to_device=True)
    kernels_s = machine_of(case).kernel_time_s(case.layer_flops, 0)
    return copy_s + (case.n_layers - 1) * max(copy_s, kernels_s) + kernels_s


@once
def program_of(run: CaseRun[Stack]) -> Program:
    return program(run.got, machine_of(run.case))


def margin_s(case: Stack, tokens: float) -> float:
    """How much longer the kernels take than the copy, on a machine like the case's rig without latencies."""
    bytes_per_param, flops_per_s, link_bytes_per_s = case.rig
    rig = Machine("rig", flops_per_s, math.inf, link_bytes_per_s, link_bytes_per_s, 0.0, 0.0, 0.0)
    n_flops = 2 * N_PARAMETERS * tokens
    return rig.kernel_time_s(n_flops, 0) - rig.copy_time_s(bytes_per_param * N_PARAMETERS, to_device=True)


def right_out(run: CaseRun) -> str | None:
    found = compare(true_out(run.tree), run.got["out"], CLOSE)
    if found is None:
        return None
    where = f" of micro-batch {found.path}" if found.path else ""
    return f"wrong {found.kind}{where}: expected {found.expected}, got {found.got}"


def right_tokens(run: CaseRun) -> str | None:
    """Checked on the model of the machine: a few tokens fewer and the copy lasts longer, a few more and it does not."""
    tokens = run.got["tokens"]
    if type(tokens) not in (int, float) or not math.isfinite(tokens):
        return f"tokens_to_hide returned {tokens!r}, which is no number of tokens"
    if margin_s(run.case, tokens * (1 - EXACT_TO)) < 0 <= margin_s(run.case, tokens * (1 + EXACT_TO)):
        return None
    times = 1 + margin_s(run.case, tokens) / abs(margin_s(run.case, 0.0))
    return f"{tokens_call(run.case)}: with {tokens:,.6g} tokens the kernels take {times:.7g} times as long as the copy"


def tokens_call(case: Stack) -> str:
    return "tokens_to_hide(bytes_per_param={:g}, flops_per_s={:g}, link_bytes_per_s={:g})".format(*case.rig)


def no_races(run: CaseRun) -> str | None:
    races = program_of(run).races
    return f"{len(races)} missing wait{'s' * (len(races) > 1)}; the first: {races[0]}" if races else None


def the_same_work(run: CaseRun) -> str | None:
    flops, wanted = program_of(run).flops, run.case.n_layers * run.case.layer_flops
    return None if flops == wanted else f"{flops:,} FLOPs were done where the layers take {wanted:,}"


def every_weight_once(run: CaseRun) -> str | None:
    copied, wanted = program_of(run).copied_bytes(to_device=True), run.case.n_layers * run.case.weight_bytes
    if copied == wanted:
        return None
    return f"{copied:,} bytes were copied to the device, and the weights have {wanted:,}"


def two_layers_at_most(run: CaseRun) -> str | None:
    held, limit = program_of(run).device_bytes, device_limit_bytes(run.case)
    if held <= limit:
        return None
    return f"{held:,} bytes were in use on the device at once; {limit:,} hold two layers and the micro-batches"


def copies_beside_kernels(run: CaseRun) -> str | None:
    took_s, best = program_of(run).duration_s, best_s(run.case)
    if took_s <= MOST_TIME * best:
        return None
    return f"it takes {took_s * 1e3:.2f} ms, and {best * 1e3:.2f} ms are enough where copies run beside kernels"


def copies_before_kernels(run: CaseRun[Stack]) -> int:
    """How many copies are done when the first kernel begins; one is enough for it."""
    spans = program_of(run).spans
    first_s = min(one.start_s for one in spans if one.kind == "kernel")
    return sum(one.kind == "to device" and one.end_s <= first_s for one in spans)


def tokens_off_by(factor: float):
    """Whether the tokens are this many times the right ones, where kernels and copy take the same time."""

    def off(run: CaseRun[Stack]) -> bool:
        right = run.got["tokens"] / factor
        return abs(margin_s(run.case, right)) < 1e-6 * abs(margin_s(run.case, 0.0))

    return off


def rounded_tokens(run: CaseRun[Stack]) -> bool:
    """A whole number less than one token off."""
    tokens = run.got["tokens"]
    near = margin_s(run.case, tokens - 1) < 0 < margin_s(run.case, tokens + 1)
    return float(tokens).is_integer() and near and right_tokens(run) is not None


def batches_together(run: CaseRun[Stack]) -> object:
    """One kernel does the work of several micro-batches."""
    if run.case.n_batches == 1:
        return CANNOT_TELL
    return max(one.flops for one in program_of(run).commands) > run.case.layer_flops / run.case.n_batches


def race(kind: str):
    return lambda run: any(one.kind == kind for one in program_of(run).races)


STREAM_WEIGHTS = Oracle(
    id="05-stream-weights",
    judge=(
        inputs_untouched,
        right_tokens,
        right_out,
        the_same_work,
        no_races,
        every_weight_once,
        two_layers_at_most,
        copies_beside_kernels,
    ),
    call=lambda run: (
        f"stream_layers(cuda, layer, {run.case.n_layers} weights of {run.case.width} × {run.case.width}, "
        f"{run.case.n_batches} micro-batches of {run.case.n_tokens} tokens); {tokens_call(run.case)}"
    ),
    axis="numbers of layers and micro-batches, and machines with other rates",
    diagnose=(
        Hint(
            tokens_off_by(2),
            "Twice the right number: a parameter costs two FLOPs for each token, a multiplication and an addition.",
        ),
        Hint(
            tokens_off_by(1 / 3),
            "A third of the right number: the forward pass takes 2 FLOPs per parameter and token, the 6 include the "
            "backward pass.",
        ),
        Hint(
            tokens_off_by(8),
            "Eight times the right number: the link's rate is in bytes per second already, not in bits.",
        ),
        Hint(
            lambda run: tokens_off_by(1 / run.case.rig[0])(run) and run.case.rig[0] != 1,
            "The bytes of a parameter are missing: copying one takes bytes_per_param / link_bytes_per_s seconds.",
        ),
        Hint(
            tokens_off_by(1 / 2),
            "Half of the right number: without gradients a parameter costs 2 FLOPs for each token. The 4 are those of "
            "its backward pass.",
        ),
        Hint(
            rounded_tokens,
            "Right but for rounding: return the number as it is, a float.",
        ),
        Hint(
            lambda run: right_tokens(run) is not None,
            "Write down the seconds for one parameter: the copy's, and the kernels' for T tokens. Set them equal and "
            "solve for T.",
        ),
        Hint(
            lambda run: len(run.got["out"]) != run.case.n_batches,
            "Return one result for each micro-batch, in their order.",
        ),
        Hint(
            lambda run: compare(true_out(run.tree), run.got["out"], CLOSE) is not None,
            "Each layer takes the results of the one before: call layer(weight, x) for every micro-batch, layer by "
            "layer, in the order of the list.",
        ),
        Hint(
            lambda run: the_same_work(run) is not None,
            "The layers' work was not done on the device: call layer(weight, x) once for each weight and micro-batch, "
            "on a copy of the weight that is where x is.",
        ),
        Hint(
            race("read too early"),
            "The kernels may begin before the weights have arrived: let the current stream wait for an event that the "
            "side stream records after the copy.",
        ),
        Hint(
            race("overwritten too early"),
            "New weights are copied over weights that kernels still read: let the side stream wait for an event that "
            "the current stream records after those kernels.",
        ),
        Hint(
            race("written twice"),
            "Memory that the current stream has just handed out may still be in use by earlier kernels: make the "
            "tensor inside the side stream's block, or let the side stream wait.",
        ),
        Hint(
            race("freed too early"),
            "Weights were dropped while kernels still read them, and the side stream may reuse their memory. Before it "
            "copies the next ones it must wait for an event that the current stream records after those kernels.",
        ),
        Hint(
            lambda run: (
                run.case.n_batches > 1
                and program_of(run).copied_bytes(to_device=True)
                == run.case.n_batches * run.case.n_layers * run.case.weight_bytes
            ),
            "Every micro-batch brings all weights over the link again. Let the loop over layers be the outer one.",
        ),
        Hint(
            lambda run: program_of(run).any("use"),
            "record_stream keeps the old weights until the host sees the kernels done, and the host is far ahead. Let "
            "the side stream wait for an event instead.",
        ),
        Hint(
            batches_together,
            "The micro-batches were put together, and there is no room for a second copy of all of them. Call layer on "
            "one micro-batch after the other.",
        ),
        Hint(
            lambda run: program_of(run).device_bytes > device_limit_bytes(run.case),
            "More than two layers are on the device: fetch the next one only when the one before the current is "
            "dropped, and keep no list of copies.",
        ),
        Hint(
            lambda run: program_of(run).any("copy", blocking=True),
            "The host waits for these copies before it launches the kernels: give `to` non_blocking=True.",
        ),
        *nothing_overlaps(program_of),
        Hint(
            lambda run: copies_before_kernels(run) > 1,
            "The kernels wait for the end of the side stream, which by now includes the copy of layer i + 1. Let them "
            "wait for an event that is recorded right after the copy of layer i.",
        ),
        Hint(
            lambda run: program_of(run).duration_s > MOST_TIME * best_s(run.case),
            "Each copy begins only when the kernels before it are done. Issue it before the current layer's kernels, "
            "and let it wait for nothing but the layer before.",
        ),
    ),
)
