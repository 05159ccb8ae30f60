"""Lab 09: what is true of copies beside kernels, and what the usual mistakes look like."""

from __future__ import annotations

import math
from collections.abc import Callable

from labkit.compare import compare, inputs_untouched
from labkit.exercises.lab09.overlap import Feed, layer, machine_of
from labkit.oracles.calls import as_call
from labkit.oracles.hints import once
from labkit.oracles.lab05.programs import Program, first_race, program
from labkit.oracles.lab09.logs import host_waits, own_commands
from labkit.simdevice import Command, Machine, timeline_of
from labkit.spec import CaseRun, Hint, Oracle, Tolerance

CLOSE = Tolerance(atol=1e-5, rtol=1e-4)
MOST_TIME = 1.1
"""Times the best: copies and kernels side by side from the second batch on."""
EXACT_TO = 1e-6


def true_out(tree: dict) -> list:
    """Without any device."""
    return [layer(tree["weight"], x) for x in tree["batches"]]


def pipeline(n_batches: int, overlapped: bool) -> list[Command]:
    """Copies and kernels of one unit each, in one stream or in two with two buffers."""
    commands = []
    for i in range(n_batches):
        copied, used = 2 * i, 2 * i + 1
        if overlapped and i >= 2:
            commands.append(Command("wait", event=used - 4, stream=1))
        commands.append(Command("copy", "copy", stream=int(overlapped), nbytes=1))
        commands.append(Command("record", event=copied, stream=int(overlapped)))
        commands.append(Command("wait", event=copied))
        commands.append(Command("kernel", "kernel", flops=1))
        commands.append(Command("record", event=used))
    return commands


def takes_s(n_batches: int, copy_s: float, kernels_s: float, overlapped: bool) -> float:
    """On a simulated machine without latencies, whose units take these times."""
    rates = [1 / seconds if seconds else math.inf for seconds in (kernels_s, copy_s)]
    machine = Machine("asked", rates[0], math.inf, rates[1], rates[1], 0.0, 0.0, 0.0)
    return timeline_of(pipeline(n_batches, overlapped), machine).clock.done_s()


def true_speedup(asked: tuple[int, float, float]) -> float:
    return takes_s(*asked, overlapped=False) / takes_s(*asked, overlapped=True)


def best_s(case: Feed) -> float:
    """The makespan of the pipeline with this machine's times, its kernels' start and the copies' included."""
    machine = machine_of(case)
    copy_s, kernels_s = machine.copy_time_s(case.batch_bytes, True), machine.kernel_time_s(case.batch_flops, 0)
    return takes_s(case.n_batches, copy_s, kernels_s, overlapped=True)


@once
def program_of(run: CaseRun[Feed]) -> Program:
    return program(run.got, machine_of(run.case))


def buffers_of(got: dict) -> list[int]:
    """The blocks of the two buffers, which the driver makes last."""
    made = [one["block"] for one in got["commands"][: got["n_before"]] if one["kind"] == "alloc"]
    return made[-2:]


def right_out(run: CaseRun) -> str | None:
    found = compare(true_out(run.tree), run.got["out"], CLOSE)
    if found is None:
        return None
    where = f" of batch {found.path}" if found.path else ""
    return f"wrong {found.kind}{where}: expected {found.expected}, got {found.got}"


def right_speedup(run: CaseRun) -> str | None:
    got, wanted = run.got["speedup"], true_speedup(run.case.asked)
    if type(got) in (int, float) and math.isclose(got, wanted, rel_tol=EXACT_TO):
        return None
    n, copy_s, kernels_s = run.case.asked
    shown = f"{got:.6g}" if type(got) in (int, float) else repr(got)[:60]
    return f"overlap_speedup({n}, {copy_s:g}, {kernels_s:g}) is {wanted:.6g}, and {shown} was returned"


def no_races(run: CaseRun) -> str | None:
    races = program_of(run).races
    return f"{len(races)} missing wait{'s' * (len(races) > 1)}; the first: {races[0]}" if races else None


def every_batch_once_into_the_buffers(run: CaseRun) -> str | None:
    case, done = run.case, program_of(run)
    flops, wanted = done.flops, case.n_batches * case.batch_flops
    if flops != wanted:
        return f"{flops:,} FLOPs were done where the batches take {wanted:,}"
    copied, wanted = done.copied_bytes(to_device=True), case.n_batches * case.batch_bytes
    if copied != wanted:
        return f"{copied:,} bytes were copied to the device, and the batches have {wanted:,}"
    if elsewhere(run):
        return "batches were copied to other memory of the device than the two buffers"
    return None


def elsewhere(run: CaseRun[Feed]) -> bool:
    allowed = set(buffers_of(run.got))
    return any(
        one.kind == "copy" and one.place == "device" and not set(one.writes) <= allowed for one in own_commands(run.got)
    )


def host_goes_on(run: CaseRun) -> str | None:
    waits = host_waits(own_commands(run.got))
    if not waits:
        return None
    copies = sum(one.kind == "copy" for one in waits)
    n_synchronized = len(waits) - copies
    kinds = [f"{copies} time{'s' * (copies > 1)} for a copy"] * (copies > 0)
    kinds += [f"{n_synchronized} time{'s' * (n_synchronized > 1)} because it was told to"] * (n_synchronized > 0)
    return f"the host waits for the device, {' and '.join(kinds)}, before the function returns"


def copies_beside_kernels(run: CaseRun) -> str | None:
    took_s, best = program_of(run).duration_s, best_s(run.case)
    if took_s <= MOST_TIME * best:
        return None
    return f"it takes {took_s * 1e3:.2f} ms, and {best * 1e3:.2f} ms are enough where copies run beside kernels"


def speedup_is(formula: Callable[[int, float, float], float]):
    """Whether the prediction is wrong and follows this formula."""

    def holds(run: CaseRun[Feed]) -> bool:
        wrong = right_speedup(run) is not None
        return wrong and math.isclose(run.got["speedup"], formula(*run.case.asked), rel_tol=EXACT_TO)

    return holds


def race(kind: str, second: str = ""):
    return lambda run: first_race(program_of(run).races, kind, second)


def too_long(run: CaseRun[Feed]) -> bool:
    return program_of(run).duration_s > MOST_TIME * best_s(run.case)


def in_one_stream(run: CaseRun[Feed]) -> bool:
    """Whether every copy is in the stream of all the kernels."""
    streams = {one.stream for one in own_commands(run.got) if one.kind in ("copy", "kernel")}
    return len(streams) == 1 and too_long(run)


def from_pageable(run: CaseRun[Feed]) -> bool:
    """Whether a blocking copy reads memory that nobody has pinned: it has no block of its own."""
    return any(one.kind == "copy" and one.blocking and not one.reads for one in own_commands(run.got))


def from_pinned(run: CaseRun[Feed]) -> bool:
    return any(one.kind == "copy" and one.blocking and one.reads for one in own_commands(run.got))


def one_buffer(run: CaseRun[Feed]) -> bool:
    written = {block for one in own_commands(run.got) if one.kind == "copy" for block in one.writes}
    return run.case.n_batches > 1 and len(written) == 1


def wrong_out(run: CaseRun[Feed]) -> bool:
    return right_out(run) is not None


OVERLAP = Oracle(
    id="09-overlap",
    judge=(
        inputs_untouched,
        right_speedup,
        right_out,
        every_batch_once_into_the_buffers,
        no_races,
        host_goes_on,
        copies_beside_kernels,
    ),
    call=lambda run: (
        f"double_buffered(cuda, compute, {run.case.n_batches} batches of shape ({run.case.n_rows}, {run.case.width}), "
        f"2 buffers), a copy takes {run.case.copy_share:g} times as long as the kernels; "
        f"{as_call('overlap_speedup', *run.case.asked)}"
    ),
    axis="numbers of batches, shapes, and links that are faster or slower than the kernels",
    diagnose=(
        Hint(
            speedup_is(lambda n, copy_s, kernels_s: (copy_s + kernels_s) / max(copy_s, kernels_s)),
            "That is the limit for very many batches. The first copy and the last kernels have nothing to run beside.",
        ),
        Hint(
            speedup_is(lambda *asked: 1 / true_speedup(asked)),
            "Upside down: the speed-up is the time in one stream divided by the time in two.",
        ),
        Hint(
            speedup_is(lambda n, copy_s, kernels_s: n * (copy_s + kernels_s) / (copy_s + n * max(copy_s, kernels_s))),
            "One piece too many or too few: draw three batches. The first copy, then n − 1 times the longer of the "
            "two, then the last kernels.",
        ),
        Hint(
            speedup_is(lambda n, copy_s, kernels_s: 2.0),
            "Two is the best there is, for very many batches whose copy takes exactly as long as their kernels. Use "
            "the three numbers.",
        ),
        Hint(
            lambda run: right_speedup(run) is not None,
            "Draw three batches, one row for copies and one for kernels. The makespan is the first copy, n − 1 times "
            "the longer of the two, and the last kernels.",
        ),
        Hint(
            lambda run: wrong_out(run) and len(run.got["out"]) != run.case.n_batches,
            "Return a list with one result for each batch, in their order.",
        ),
        Hint(
            wrong_out,
            "Each result belongs to its own batch: copy batch i into buffers[i % 2], then call compute on that buffer.",
        ),
        Hint(
            elsewhere,
            "The batches go into new memory. Copy them into the two buffers that you were given: "
            "buffers[i % 2].copy_(..., non_blocking=True).",
        ),
        Hint(
            race("read too early", "add on"),
            "The caller uses your results on its own stream, which does not know of yours. Let the current stream wait "
            "for every stream that computed something before you return.",
        ),
        Hint(
            race("written twice", "copy to device"),
            "Two copies into the same buffer may run at once. Issue all copies on one side stream, or let the later "
            "one wait.",
        ),
        Hint(
            race("read too early"),
            "The kernels may begin before the batch has arrived: let the stream that computes wait for an event "
            "recorded after the copy.",
        ),
        Hint(
            race("overwritten too early", "the host"),
            "The host writes into pinned memory that an earlier copy still reads. Give each batch pinned memory of its "
            "own: batch.pin_memory().",
        ),
        Hint(
            race("overwritten too early"),
            "A batch is copied over one that kernels still read. Record an event after the kernels of batch i, and "
            "let the side stream wait for it before batch i + 2 takes the same buffer.",
        ),
        Hint(
            race("freed too early"),
            "Memory that one stream made was dropped while another still reads it: keep a reference, or let its stream "
            "wait first.",
        ),
        Hint(
            from_pageable,
            "Batches in memory that is not pinned make the host wait, whatever non_blocking says: copy from "
            "batch.pin_memory().",
        ),
        Hint(
            from_pinned,
            "The memory is pinned, and still the host waits for the copy: give copy_ non_blocking=True.",
        ),
        Hint(
            lambda run: bool(host_waits(own_commands(run.got))),
            "synchronize stops the host. Let one stream wait for the other instead: wait_event and wait_stream return "
            "at once.",
        ),
        Hint(
            in_one_stream,
            "The copies queue up with the kernels in one stream: issue the copies, and nothing else, under `with "
            "cuda.stream(side):`.",
        ),
        Hint(
            lambda run: one_buffer(run) and too_long(run),
            "With one buffer every copy has to wait for the kernels before it. Take turns: buffers[i % 2].",
        ),
        Hint(
            too_long,
            "Each copy waits for all kernels queued so far. It needs to wait only for those of batch i − 2, which used "
            "its buffer: keep an event for each batch.",
        ),
    ),
)
