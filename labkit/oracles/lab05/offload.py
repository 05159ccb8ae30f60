"""Lab 05: what is true of offloaded activations, and what the usual mistakes look like."""

from __future__ import annotations

import torch

from labkit.compare import compare, inputs_untouched
from labkit.exercises.lab05.offload import Layers, forward, machine_of
from labkit.oracles.hints import once
from labkit.oracles.lab05.programs import Program, first_race, nothing_overlaps, program
from labkit.simdevice import from_plain
from labkit.spec import CaseRun, Hint, Oracle, Tolerance

CLOSE = Tolerance(atol=1e-5, rtol=1e-4)
LEAST_HIDDEN = 0.75
"""The part of the copies' time, in each direction, that must pass beside kernels."""


def true_grads(tree: dict) -> list[torch.Tensor]:
    """By autograd, which saves everything where it is."""
    leaves = [tensor.clone().requires_grad_() for tensor in (*tree["weights"], tree["x"])]
    return list(torch.autograd.grad(forward(leaves[:-1], leaves[-1]), leaves, tree["grad"]))


def moved_bytes(case: Layers) -> int:
    """Two tensors a layer."""
    return 2 * case.n_layers * case.activation_bytes


def most_activations(case: Layers) -> int:
    """That the device may hold: x, grad and the output; n_in_flight on their way; six in use by one layer."""
    return 3 + case.n_in_flight + 6


def room(case: Layers) -> str:
    """How `most_activations` is made up."""
    return f"n_in_flight = {case.n_in_flight} on their way, x, y and grad, 6 in use by a layer"


def held_activations(run: CaseRun[Layers]) -> float:
    """That the device held, beside the weights, and beside their gradients from the first copy back on."""
    done, weights_bytes = program_of(run), run.case.n_layers * run.case.weight_bytes
    return (
        max(done.early_device_bytes - weights_bytes, done.device_bytes - 2 * weights_bytes) / run.case.activation_bytes
    )


@once
def program_of(run: CaseRun[Layers]) -> Program:
    return program(run.got, machine_of(run.case))


def weights_moved_bytes(run: CaseRun[Layers]) -> int:
    """Bytes copied to the host out of the weights' own memory, which is what the driver makes first."""
    commands = from_plain(run.got["commands"])
    made = [one.block for one in commands[: run.got["n_before"]] if one.kind == "alloc" and one.place == "device"]
    weights = set(made[: run.case.n_layers])
    copies = (one for one in commands[run.got["n_before"] :] if one.kind == "copy" and one.place != "device")
    return sum(one.nbytes for one in copies if weights & set(one.reads))


def exact_gradients(run: CaseRun) -> str | None:
    found = compare(true_grads(run.tree), run.got["grads"], CLOSE)
    if found is None:
        return None
    which = int(found.path.split(".")[0] or 0) if found.path else 0
    name = "x" if which == run.case.n_layers else f"weight {which}"
    return f"wrong gradient of {name}: expected {found.expected}, got {found.got}; {found.n_bad} values differ"


def weights_stay(run: CaseRun) -> str | None:
    """Asked before anything about waits: weights that come and go make some of their own missing."""
    n_bytes = weights_moved_bytes(run)
    return f"{n_bytes:,} bytes of weights were copied to the host" if n_bytes else None


def no_races(run: CaseRun) -> str | None:
    races = program_of(run).races
    return f"{len(races)} missing wait{'s' * (len(races) > 1)}; the first: {races[0]}" if races else None


def the_same_work(run: CaseRun) -> str | None:
    """Forward once and backward once: three matrix products a layer."""
    flops, wanted = program_of(run).flops, 3 * run.case.n_layers * run.case.forward_flops
    return None if flops == wanted else f"{flops:,} FLOPs were done where the layers take {wanted:,}"


def every_activation_moved_once(run: CaseRun) -> str | None:
    done, wanted = program_of(run), moved_bytes(run.case)
    # What is still on its way out when the backward pass begins may be used as it is.
    spared = run.case.n_in_flight * run.case.activation_bytes
    for where, to_device, least in (("to the host", False, wanted), ("back to the device", True, wanted - spared)):
        copied = done.copied_bytes(to_device)
        if not least <= copied <= wanted:
            return f"{copied:,} bytes were copied {where}, and the layers' activations have {wanted:,}"
    if done.host_bytes > wanted:
        return f"{done.host_bytes:,} bytes were held on the host, and the layers' activations have {wanted:,}"
    return None


def little_on_the_device(run: CaseRun) -> str | None:
    held, most = held_activations(run), most_activations(run.case)
    if held <= most:
        return None
    return f"the device held {held:.4g} activations at once; there is room for {most}: {room(run.case)}"


def copies_beside_kernels(run: CaseRun) -> str | None:
    done = program_of(run)
    for where, kind in (("to the host", "to host"), ("back to the device", "to device")):
        share = done.hidden_share(kind)
        if share < LEAST_HIDDEN:
            return (
                f"{share:.0%} of the time of the copies {where} passes beside kernels; {LEAST_HIDDEN:.0%} is asked for"
            )
    return None


def in_half_precision(run: CaseRun[Layers]) -> bool:
    wanted = true_grads(run.tree)
    return all(
        bool((mine - true).norm() < 0.03 * true.norm()) for mine, true in zip(run.got["grads"], wanted, strict=True)
    )


def moved(run: CaseRun[Layers], to_device: bool) -> int:
    return program_of(run).copied_bytes(to_device)


def too_much(run: CaseRun[Layers]) -> bool:
    return held_activations(run) > most_activations(run.case)


def exact_wrong(run: CaseRun[Layers]) -> bool:
    return compare(true_grads(run.tree), run.got["grads"], CLOSE) is not None


OFFLOAD = Oracle(
    id="05-offload",
    judge=(
        inputs_untouched,
        exact_gradients,
        the_same_work,
        weights_stay,
        no_races,
        every_activation_moved_once,
        little_on_the_device,
        copies_beside_kernels,
    ),
    call=lambda run: (
        f"offload_hooks(cuda, parameters, n_in_flight={run.case.n_in_flight}) around {run.case.n_layers} layers of "
        f"width {run.case.width} on {run.case.n_tokens} tokens"
    ),
    axis="numbers of layers, shapes, and n_in_flight",
    diagnose=(
        Hint(
            lambda run: exact_wrong(run) and in_half_precision(run),
            "Nearly right: the copy has fewer bits than the activation. Give the host's tensor the dtype of x.",
        ),
        Hint(
            exact_wrong,
            "What comes back is not what was saved. Each call of pack needs a host tensor of its own, and unpack must "
            "return the copy of that one.",
        ),
        Hint(
            lambda run: weights_moved_bytes(run) > 0,
            "Weights were copied to the host: autograd saves a transposed view of each. Recognize them by "
            "untyped_storage().data_ptr(), which a view shares, and hand them through.",
        ),
        Hint(
            lambda run: (
                first_race(program_of(run).races, "freed too early", "free")
                and "copy to host" in program_of(run).races[0].first
            ),
            "x was freed while it was still being copied to the host. Keep x together with an event that the side "
            "stream records after the copy. Before you drop x, let the current stream wait for that event.",
        ),
        Hint(
            lambda run: first_race(program_of(run).races, "freed too early"),
            "A tensor made on the side stream was freed while kernels still read it, and the side stream may reuse its "
            "memory. After those kernels, record an event on the current stream. Before you drop the tensor, let the "
            "side stream wait for that event.",
        ),
        Hint(
            lambda run: first_race(program_of(run).races, "read too early", "copy to host"),
            "The copy may start before x is computed: let the side stream wait for the current one first.",
        ),
        Hint(
            lambda run: first_race(program_of(run).races, "read too early", "copy to device"),
            "The copy back may start before the copy to the host is done: use the same side stream, or wait.",
        ),
        Hint(
            lambda run: first_race(program_of(run).races, "read too early"),
            "Kernels may read the tensor before it has come back: let the current stream wait for the side stream "
            "before unpack returns it.",
        ),
        Hint(
            lambda run: first_race(program_of(run).races, "written twice"),
            "Memory that the current stream has just handed out may still be in use by earlier kernels: make the "
            "tensor inside the side stream's block, or let the side stream wait.",
        ),
        Hint(
            lambda run: moved(run, to_device=False) > moved_bytes(run.case),
            "More was copied to the host than the layers save. Copy each tensor that pack is given once, and the "
            "weights and their transposed views not at all.",
        ),
        Hint(
            lambda run: run.case.n_tokens == run.case.width and moved(run, to_device=False) == 0,
            "Here activations have the shape of a weight, and none went to the host. Recognize parameters by their "
            "memory: untyped_storage().data_ptr().",
        ),
        Hint(
            lambda run: moved(run, to_device=True) == 0,
            "Nothing came back from the host, so the device has kept it all: pack must not return x itself.",
        ),
        Hint(
            lambda run: moved(run, to_device=False) < moved_bytes(run.case),
            "Some activations never went to the host. Hand through what lies in a parameter's own memory, and nothing "
            "else.",
        ),
        Hint(
            lambda run: too_much(run) and program_of(run).any("use"),
            "record_stream keeps memory until the host sees the copy done, and the host is far ahead. Keep at most "
            "n_in_flight tensors with an event each, and let the other stream wait for the oldest event.",
        ),
        Hint(
            too_much,
            "The device holds what has been copied. Neither what pack returns nor a list may keep x for longer than "
            "its copy takes, and no more than n_in_flight tensors may be on their way, in either direction.",
        ),
        Hint(
            lambda run: program_of(run).any("copy", blocking=True),
            "The host waits for these copies: only a non_blocking copy from or to pinned memory "
            "(torch.empty(..., pin_memory=True)) returns at once.",
        ),
        *nothing_overlaps(program_of),
        Hint(
            lambda run: program_of(run).hidden_share("to host") < LEAST_HIDDEN,
            "The kernels stop for each copy: the current stream waits for it at once. Keep up to n_in_flight tensors "
            "and wait for the oldest only.",
        ),
        Hint(
            lambda run: program_of(run).hidden_share("to device") < LEAST_HIDDEN,
            "Each copy back begins only when all kernels launched before it are done. Let the side stream wait for "
            "less: for the kernels that read the tensor returned n_in_flight calls earlier, by an event recorded after "
            "them.",
        ),
    ),
)
