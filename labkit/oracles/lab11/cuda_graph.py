"""Lab 11: what is true of a captured step, worked out from the commands, and what the usual mistakes look like."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from labkit.compare import compare, inputs_untouched
from labkit.exercises.lab11.cuda_graph import MACHINE, Replays, Step
from labkit.oracles.hints import once
from labkit.oracles.lab09.logs import host_waits
from labkit.simdevice import Command, StaleInput, from_plain, timeline_of
from labkit.spec import CaseRun, Hint, Oracle, Tolerance

CLOSE = Tolerance(atol=1e-5, rtol=1e-4)
EXACT_TO = 1e-6


def true_pays_from_s(kernels_s: tuple[float, ...], copy_s: float) -> float:
    """A launch of each kernel and one of the copy take as long as the device does."""
    return (sum(kernels_s) + copy_s) / (len(kernels_s) + 1)


@once
def commands_of(run: CaseRun[Replays]) -> tuple[Command, ...]:
    return from_plain(run.got["commands"])


@once
def calls_of(run: CaseRun[Replays]) -> list[tuple[Command, ...]]:
    """The commands of each call of the function. Raises ValueError where they cannot be."""
    commands, calls, end = commands_of(run), [], 0
    for start, stop in run.got["spans"]:
        if type(start) is not int or type(stop) is not int or not end <= start <= stop <= len(commands):
            raise ValueError("the calls' commands lie outside of the list")
        calls.append(commands[start:stop])
        end = stop
    return calls


@once
def stale_of(run: CaseRun[Replays]) -> tuple[StaleInput, ...]:
    return tuple(timeline_of(commands_of(run), MACHINE).stale.found)


def right_out(run: CaseRun[Replays]) -> str | None:
    step = Step(run.tree["weights"])
    found = compare([step(x) for x in run.tree["batches"]], run.got["out"], CLOSE)
    if found is None:
        return None
    where = f" of batch {found.path}" if found.path else ""
    return f"wrong {found.kind}{where}: expected {found.expected}, got {found.got}"


def no_stale_input(run: CaseRun[Replays]) -> str | None:
    return str(stale_of(run)[0]) if stale_of(run) else None


def one_launch_a_step(run: CaseRun[Replays]) -> str | None:
    for at, call in enumerate(calls_of(run)):
        n_replays, n_kernels = (sum(one.kind == kind for one in call) for kind in ("replay", "kernel"))
        if n_captured := sum(one.kind == "capture" for one in call):
            return f"call {at} captures {n_captured} kernels, and the capture belongs before the first call"
        if (n_replays, n_kernels) != (1, 0):
            return f"call {at} launches graphs: {n_replays}, single kernels: {n_kernels}; one graph is enough"
    return None


def the_whole_step_is_captured(run: CaseRun[Replays]) -> str | None:
    captured = [one for one in commands_of(run) if one.kind == "capture"]
    if len(captured) == run.case.n_kernels:
        return None
    return f"{len(captured)} kernels were captured, and a step has {run.case.n_kernels}"


def one_copy_a_step(run: CaseRun[Replays]) -> str | None:
    for at, call in enumerate(calls_of(run)):
        copies = [one for one in call if one.kind == "copy"]
        if len(copies) != 1:
            return f"call {at} makes {len(copies)} copies, and the batch is copied once"
    return None


def host_goes_on(run: CaseRun[Replays]) -> str | None:
    n_waits = sum(len(host_waits(call)) for call in calls_of(run))
    return f"the host waits for the device {n_waits} times in {len(calls_of(run))} calls" if n_waits else None


def right_launch_time(run: CaseRun[Replays]) -> str | None:
    got, wanted = run.got["pays_from_s"], true_pays_from_s(*run.case.asked)
    if type(got) in (int, float) and math.isclose(got, wanted, rel_tol=EXACT_TO):
        return None
    shown = f"{got:.6g}" if type(got) in (int, float) else repr(got)[:60]
    kernels_s, copy_s = run.case.asked
    return f"pays_from_s(kernels_s={list(kernels_s)}, copy_s={copy_s:g}) is {wanted:.6g}, and {shown} was returned"


def launch_time_is(formula: Callable[[tuple[float, ...], float], float]) -> Callable[[CaseRun], bool]:
    def holds(run: CaseRun[Replays]) -> bool:
        wrong = right_launch_time(run) is not None
        return wrong and math.isclose(run.got["pays_from_s"], formula(*run.case.asked), rel_tol=EXACT_TO)

    return holds


def in_calls(kind: str) -> Callable[[CaseRun], bool]:
    """Whether every call of the function has a command of this kind."""
    return lambda run: all(any(one.kind == kind for one in call) for call in calls_of(run))


def stale(kind: str) -> Callable[[CaseRun], bool]:
    return lambda run: any(one.kind == kind for one in stale_of(run))


def nothing_ran(run: CaseRun[Replays]) -> bool:
    return not any(one.kind == "replay" for one in commands_of(run))


def is_nan(run: CaseRun[Replays]) -> bool:
    return any(isinstance(one, torch.Tensor) and bool(one.isnan().any()) for one in run.got["out"])


def called(run: CaseRun[Replays]) -> str:
    case = run.case
    kernels_s, copy_s = case.asked
    return (
        f"run = graphed(cuda, step, example) with a step of {case.n_kernels} kernels, called with {case.n_batches} "
        f"batches of shape ({case.n_rows}, {case.width}); pays_from_s({list(kernels_s)}, {copy_s})"
    )


CUDA_GRAPH = Oracle(
    id="11-cuda-graph",
    call=called,
    judge=(
        inputs_untouched,
        no_stale_input,
        one_launch_a_step,
        right_out,
        the_whole_step_is_captured,
        one_copy_a_step,
        host_goes_on,
        right_launch_time,
    ),
    errors={
        "when stream is capturing": "The first call of `step` copies its weights to the device, which no graph may "
        "hold: call `step` once before the capture.",
        "to a different device": "The batch lies on the host: copy it to the static input first.",
    },
    diagnose=(
        Hint(
            stale("freed"),
            "The graph reads memory that was freed after the capture. A replay goes to the addresses of the capture, "
            "and binding a name to another tensor frees the one before: keep the static input, and copy each batch "
            "into it.",
        ),
        Hint(
            in_calls("capture"),
            "A graph is captured in every call. Capturing runs all of the step's Python and prepares every launch "
            "again: capture once in `graphed`, and only replay in the function that you return.",
        ),
        Hint(
            stale("unchanged"),
            "The replays read the same input again: a graph reads at the address of its capture, whatever your "
            "variable is bound to. Copy each batch there: static_x.copy_(batch, non_blocking=True).",
        ),
        Hint(
            lambda run: nothing_ran(run) and (is_nan(run) or not in_calls("kernel")(run)),
            "Nothing is replayed. Inside `cuda.graph(...)` operations are only noted, and their results hold no values "
            "yet: `g.replay()` runs them.",
        ),
        Hint(
            nothing_ran,
            "The step runs kernel by kernel in every call, each with a launch of its own. Capture it once, and call "
            "`g.replay()`.",
        ),
        Hint(
            lambda run: one_launch_a_step(run) is not None and in_calls("replay")(run) and in_calls("kernel")(run),
            "Beside the graph, something else is launched in every call. The result may be the graph's own output, "
            "valid until the next call: it needs no clone.",
        ),
        Hint(
            lambda run: right_out(run) is not None and in_calls("replay")(run),
            "The graph is replayed, and the results are not the step's. The order is: copy the batch to the "
            "static input, replay, return the output that the capture made.",
        ),
        Hint(
            lambda run: host_goes_on(run) is not None,
            "The host waits in every call. The batches are pinned, so `copy_(batch, non_blocking=True)` returns at "
            "once, and what follows on the same stream needs no `synchronize`.",
        ),
        Hint(
            launch_time_is(lambda kernels_s, copy_s: sum(kernels_s) / len(kernels_s)),
            "The copy of the batch is launched and takes its time too, in the graph's loop as in the other.",
        ),
        Hint(
            launch_time_is(lambda kernels_s, copy_s: (sum(kernels_s) + copy_s) / len(kernels_s)),
            "The copy of the batch is launched too: one more launch than there are kernels.",
        ),
        Hint(
            launch_time_is(lambda kernels_s, copy_s: sum(kernels_s) / (len(kernels_s) + 1)),
            "The copy of the batch takes its time on the device too.",
        ),
        Hint(
            launch_time_is(lambda kernels_s, copy_s: max(kernels_s)),
            "Launches run ahead while a long kernel runs, so one long kernel hides many launches: compare the sums of "
            "a whole step.",
        ),
        Hint(
            launch_time_is(lambda kernels_s, copy_s: sum(kernels_s) + copy_s),
            "That is the device's time for a whole step, and the host spends the launch time once for each launch.",
        ),
        Hint(
            launch_time_is(lambda kernels_s, copy_s: (sum(kernels_s) + copy_s) / 2),
            "With two launches a step, that is where even the graph is held up by its launches. The eager step is held "
            "up much earlier: it has one launch for each kernel.",
        ),
        Hint(
            lambda run: right_launch_time(run) is not None,
            "Host and device work at the same time, so a step takes the longer of the two: launches times launch_s, or "
            "the sum of what the device does. The graph pays from where the eager step's launches take longer.",
        ),
    ),
    axis="other steps and batches, other times of kernels",
)
