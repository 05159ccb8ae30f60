"""Lab 15: what is true of data parallel training: one process's weights, few calls, and time that they do not take."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from labkit.compare import compare, inputs_untouched
from labkit.exercises.lab15.ddp import BLOCK_S, Job, Net, cluster_of
from labkit.oracles.lab15.one_process import replicas_with, whole_batch
from labkit.spec import CANNOT_TELL, Budget, CaseRun, Hint, Oracle, Tolerance

CLOSE = Tolerance(atol=2e-5, rtol=1e-4)
"""A few steps in float32, whose sums run in another order."""
BUFFERS = ("temperature", "n_seen", "gain")
ROOM = 1.5
"""Buckets may be cut otherwise than in the schedule below: what stands out of the backward pass may last so much."""


def as_in_one_process(run: CaseRun) -> str | None:
    """Parameters and buffers of every rank are those of one process that had the whole batch."""
    model = whole_batch(run)
    names = [name for name, _ in model.named_parameters()]
    wanted = {name: value.detach() for name, value in (*model.named_parameters(), *model.named_buffers())}
    for rank, got in enumerate(run.got["ranks"]):
        named = {**dict(zip(names, got["parameters"], strict=True)), **{name: got[name] for name in BUFFERS}}
        if found := compare(wanted, named, CLOSE):
            place = f"{found.path}{list(found.index) if found.index else ''}"
            steps = f"{run.case.n_steps} step{'s' * (run.case.n_steps != 1)}"
            return f"after {steps} rank {rank} has {found.got} at {place}, and one process has {found.expected}"
    return None


def every_gradient_there(run: CaseRun) -> str | None:
    """At the optimizer's step every parameter has a gradient, be it zero. One rank alone has nothing to average."""
    if run.case.n_ranks == 1:
        return None
    return _on_some_rank(run, "without_grad", "has no .grad when the optimizer steps")


every_gradient_there.hint = (
    "finish() puts the average into .grad of every parameter, zeros included. An optimizer leaves out a parameter "
    "whose .grad is None, so with momentum or weight decay it would stop moving."
)


def no_gradient_left(run: CaseRun) -> str | None:
    """After a step no parameter has a gradient."""
    return _on_some_rank(run, "left", "still has a gradient after train_step")


no_gradient_left.hint = (
    "train_step clears the gradients at its end: `.grad` of a step that is over takes memory during the next forward "
    "pass, and adds up with the next gradient."
)


def _on_some_rank(run: CaseRun, what: str, says: str) -> str | None:
    for rank, got in enumerate(run.got["ranks"]):
        if names := got[what]:
            return f"{names[0]} {says}, on rank {rank}"
    return None


def buckets_let_go(run: CaseRun) -> str | None:
    """At the end no more buckets are held than one step has."""
    for rank, got in enumerate(run.got["ranks"]):
        most = len(got["calls"]["bytes"]) // run.case.n_steps
        if got["n_held"] > most:
            return f"after {run.case.n_steps} steps rank {rank} still holds {got['n_held']} buckets of {most} a step"
    return None


buckets_let_go.hint = (
    "The list of started all-reduces grows from step to step, and each entry keeps a bucket of gradients in memory: "
    "empty it in finish()."
)


def identical(run: CaseRun) -> str | None:
    """All ranks hold the same bits."""
    first, *others = (got["parameters"] for got in run.got["ranks"])
    for rank, parameters in enumerate(others, 1):
        if not all(torch.equal(one, other) for one, other in zip(first, parameters, strict=True)):
            return f"the weights of rank 0 and rank {rank} are close, but not the same bits"
    return None


def bucket_bytes(case: Job) -> list[int]:
    """The buckets of a network whose parameters are dealt from the last to the first."""
    sizes, total = [], 0
    for parameter in reversed(list(Net(case, 0).parameters())):
        total += parameter.nbytes
        if total >= case.cap_bytes:
            sizes.append(total)
            total = 0
    return sizes + [total] * bool(total)


def reduce_s(case: Job, n_bytes: int) -> float:
    """A ring: 2(n-1) steps, in each of which an n-th of the bytes goes over every wire."""
    wire = cluster_of(case).within
    return 2 * (case.n_ranks - 1) * wire.time_s(n_bytes / case.n_ranks)


def after_backward_s(case: Job) -> float:
    """How long the last bucket ends after the backward pass, if every bucket leaves when its last block is done."""
    until_s = ready = 0.0
    backward_s = case.backward_s
    layers_bytes = case.block_bytes * (case.n_blocks + 2 * case.odd_ranks_swap + case.n_crossed)
    for n_bytes, total in zip(bucket_bytes(case), itertools.accumulate(bucket_bytes(case))):
        # The embedding's gradient comes last of all.
        ready = min(math.ceil(total / case.block_bytes) * BLOCK_S, backward_s) if total <= layers_bytes else backward_s
        until_s = max(until_s, ready) + reduce_s(case, n_bytes)
    return until_s - backward_s


def start_bytes(case: Job) -> list[int]:
    """What has to be broadcast. The shared weight has two names, and may go twice."""
    net = Net(case, 0)
    named = (*net.named_parameters(remove_duplicate=False), *net.named_buffers())
    return [tensor.nbytes for _, tensor in named]


def start_s(case: Job) -> float:
    """A broadcast for each, one after the other."""
    hops, wire = math.ceil(math.log2(case.n_ranks)), cluster_of(case).within
    return sum(hops * wire.time_s(n_bytes) for n_bytes in start_bytes(case))


def most_seconds(run: CaseRun[Job]) -> float:
    """Where a block is missing on some ranks, its bucket and those behind it may wait for the end."""
    case = run.case
    step_s = case.backward_s + ROOM * after_backward_s(case)
    if case.odd_ranks_skip is not None:
        step_s += sum(reduce_s(case, n_bytes) for n_bytes in bucket_bytes(case))
    return (start_s(case) + case.n_steps * step_s) * (1 + 1e-9)


def least_seconds(case: Job) -> float:
    """Every weight leaves rank 0 once; every step has a backward pass, and a last bucket behind it."""
    if case.n_ranks == 1:
        return case.n_steps * case.backward_s
    wire = cluster_of(case).within
    n_bytes = sum(tensor.nbytes for tensor in (*Net(case, 0).parameters(), *Net(case, 0).buffers()))
    backward_s = case.backward_s - BLOCK_S * (case.odd_ranks_skip is not None)
    return n_bytes / wire.bytes_per_s + case.n_steps * (backward_s + reduce_s(case, 0))


def takes_its_time(run: CaseRun) -> str | None:
    """The clock of the network has seen the backward passes."""
    least_s, seconds = least_seconds(run.case), run.measured["seconds"]
    if seconds < least_s * (1 - 1e-6):
        return (
            f"broadcast and backward passes take at least {1000 * least_s:.0f} ms, and all was over in "
            f"{1000 * seconds:.0f} ms"
        )
    return None


def most_calls(run: CaseRun[Job]) -> int:
    """One broadcast for every tensor at the start, then a call for every full bucket and one for the rest."""
    return len(start_bytes(run.case)) + run.case.n_steps * calls_a_step(run.case)


def calls_a_step(case: Job) -> int:
    return max(math.ceil(sum(bucket_bytes(case)) / case.cap_bytes), 1)


def most_bytes(run: CaseRun[Job]) -> float:
    """The root of a tree sends every tensor to ⌈log₂ n⌉ others; a ring's chunks are rounded up to whole numbers."""
    case = run.case
    n = case.n_ranks
    at_start = math.ceil(math.log2(n)) * sum(start_bytes(case))
    chunks = 2 * (n - 1) * (sum(bucket_bytes(case)) / n + 4 * calls_a_step(case))
    return at_start + case.n_steps * chunks + 4


def twice(case: Job) -> list[int]:
    """The gradients' bytes, that of the shared weight under both of its names."""
    return [parameter.nbytes for _, parameter in Net(case, 0).named_parameters(remove_duplicate=False)]


def well_filled(run: CaseRun) -> str | None:
    """No bucket takes another parameter after it has reached its cap."""
    case = run.case
    most = case.cap_bytes + max(parameter.nbytes for parameter in Net(case, 0).parameters())
    for got in run.got["ranks"]:
        largest = max(got["calls"]["bytes"], default=0)
        if largest >= most:
            return f"a bucket of {largest:,} bytes: with a cap of {case.cap_bytes:,} it closes below {most:,}"
    return None


well_filled.hint = (
    "Close a bucket as soon as its gradients have reached the cap, begin the next, and send gradients in their own "
    "dtype."
)


def ended_as_with(*mistakes: str) -> Callable[[CaseRun[Job]], Any]:
    """A diagnosis: every rank ended where one of these mistakes alone would have brought it. CANNOT_TELL where that is
    where it should be."""

    def when(run: CaseRun[Job]) -> Any:
        right = [parameter.detach() for parameter in whole_batch(run).parameters()]
        tells = False
        for mistake in mistakes:
            wrong = replicas_with(run, mistake)
            ranks = zip(wrong, run.got["ranks"], strict=True)
            if any(compare(right, replica, CLOSE) for replica in wrong):
                tells = True
                if all(compare(replica, one["parameters"], CLOSE) is None for replica, one in ranks):
                    return True
        return False if tells else CANNOT_TELL

    return when


def own_counts(run: CaseRun[Job]) -> bool:
    """Every rank kept the whole number that it started with, and all the rest is right."""
    kept = all(torch.equal(one["n_seen"], part["n_seen"]) for one, part in zip(run.got["ranks"], run.tree["ranks"]))
    shared = {"ranks": [{**one, "n_seen": run.tree["ranks"][0]["n_seen"]} for one in run.got["ranks"]]}
    return kept and run.case.n_ranks > 1 and as_in_one_process(replace(run, got=shared)) is None


def nothing_moved(run: CaseRun[Job]) -> bool:
    """Whether all ranks have the weights from which rank 0 began."""
    start = run.tree["ranks"][0]["parameters"]
    return all(
        torch.equal(old, new) for one in run.got["ranks"] for old, new in zip(start, one["parameters"], strict=True)
    )


def narrow(run: CaseRun[Job]) -> bool:
    """All buckets left, each with half of its bytes."""
    sent = calls(run.got)["bytes"]
    return [2 * n_bytes for n_bytes in sent] == run.case.n_steps * bucket_bytes(run.case)


def stand_still(run: CaseRun[Job]) -> bool:
    """Whether weights that should have moved are on all ranks those from which rank 0 began."""
    start, right = run.tree["ranks"][0]["parameters"], whole_batch(run).parameters()
    return any(
        not torch.equal(old, new) and all(torch.equal(old, one["parameters"][i]) for one in run.got["ranks"])
        for i, (old, new) in enumerate(zip(start, right, strict=True))
    )


def skipped_stands_still(run: CaseRun[Job]) -> bool:
    """Whether the block that odd ranks skip kept its first weight on rank 1, and not on rank 0."""
    names = [name for name, _ in Net(run.case, 0).named_parameters()]
    block = names.index(f"blocks.{run.case.odd_ranks_skip}.weight")
    first = run.tree["ranks"][0]["parameters"][block]
    moved, still = (one["parameters"][block] for one in run.got["ranks"][:2])
    return torch.equal(first, still) and not torch.equal(first, moved)


def calls(got: dict) -> dict[str, list]:
    return got["ranks"][0]["calls"]


def one_at_a_time(run: CaseRun[Job]) -> Any:
    """Where odd ranks complete their buckets in another order, they start fewer all-reduces inside of backward."""
    if not run.case.odd_ranks_swap and not run.case.n_crossed:
        return CANNOT_TELL
    even, odd = (sum(one["calls"]["in_backward"]) for one in run.got["ranks"][:2])
    return 0 < odd < even and as_in_one_process(run) is None


def late_from_the_second_step_on(case: Job, in_backward: list[bool]) -> bool:
    """Whether all-reduces of the first step alone began inside of a backward pass."""
    n_calls = len(in_backward) // case.n_steps
    return case.n_steps > 1 and any(in_backward[:n_calls]) and not any(in_backward[n_calls:])


def in_words(run: CaseRun[Job]) -> str:
    """What a case asks: the arguments, and what is unusual about its network."""
    case = run.case
    text = (
        f"{case.n_ranks} rank{'s' * (case.n_ranks != 1)}, {case.n_blocks} blocks, bucket_bytes={case.cap_bytes}, "
        f"max_norm={case.max_norm:.3g}, {case.n_steps} step{'s' * (case.n_steps != 1)}"
    )
    if case.odd_ranks_skip is not None:
        text += f"; odd ranks leave out block {case.odd_ranks_skip}"
    if case.odd_ranks_swap or case.n_crossed:
        text += f"; odd ranks call {case.n_crossed or 2} layers in the other order"
    return text


DDP = Oracle(
    id="15-ddp",
    call=in_words,
    judge=(
        inputs_untouched,
        as_in_one_process,
        identical,
        every_gradient_there,
        no_gradient_left,
        takes_its_time,
        well_filled,
        buckets_let_go,
    ),
    budgets=(
        Budget(
            "collectives",
            most_calls,
            "Too many calls: one all-reduce for each bucket and step. Fill a bucket until it reaches its cap, and only "
            "then begin the next.",
        ),
        Budget(
            "bytes_sent",
            most_bytes,
            "Too many bytes: every gradient goes through one all-reduce a step, once, in its own dtype.",
        ),
        Budget(
            "seconds",
            most_seconds,
            "The buckets leave too late. A bucket's all-reduce starts in the hook of the gradient that completes it, "
            "and the buckets begin at the last layer, whose gradients come first.",
        ),
    ),
    diagnose=(
        Hint(
            ended_as_with("own weights"),
            "Every rank kept the weights that it started with. Broadcast parameters and buffers from rank 0 before "
            "the first step.",
        ),
        Hint(
            ended_as_with("own gain"),
            "One buffer was never broadcast. module.state_dict() leaves out buffers that were registered with "
            "persistent=False: go over module.buffers().",
        ),
        Hint(
            lambda run: own_counts(run) or ended_as_with("own buffers")(run),
            "The parameters are the same everywhere and the buffers are not: broadcast module.buffers() as well, also "
            "those of whole numbers.",
        ),
        Hint(
            ended_as_with("never talks"),
            "Every rank trained by itself: what the all-reduce brought never came back into .grad.",
        ),
        Hint(
            ended_as_with("clips first"),
            "Each rank clipped its own gradient before the average. The norm that counts is that of the averaged "
            "gradient: wait for all buckets, then clip.",
        ),
        Hint(
            ended_as_with("sums"),
            "The gradients are sums over the ranks: divide by the number of ranks, or reduce with op='avg'.",
        ),
        Hint(
            ended_as_with("divides twice"),
            "The gradients were divided by the number of ranks twice: op='avg' divides already.",
        ),
        Hint(
            ended_as_with("clips values"),
            "Each number of the gradient was clipped by itself. clip_grad_norm_ shortens the whole gradient, "
            "clip_grad_value_ also turns it.",
        ),
        Hint(
            ended_as_with("never clips", "clips what is left"),
            "Nothing was clipped: clip_grad_norm_ comes after the wait and before the step. What is clipped earlier is "
            "replaced by the average.",
        ),
        Hint(
            ended_as_with("adds up"),
            "The gradients of earlier steps are still in .grad: clear them once the optimizer has stepped.",
        ),
        Hint(
            ended_as_with("mixes"),
            "Gradients of different layers were added up: the ranks sent their buckets in different orders. A "
            "complete bucket waits until all buckets before it have left.",
        ),
        Hint(
            lambda run: any(
                torch.equal(one["parameters"][0], part["parameters"][0])
                and not torch.equal(one["parameters"][0], run.tree["ranks"][0]["parameters"][0])
                for one, part in zip(run.got["ranks"], run.tree["ranks"])
            ),
            "A layer that nobody calls was never broadcast: send every parameter from rank 0, whether it will get a "
            "gradient or not.",
        ),
        Hint(
            nothing_moved,
            "No weight has moved. The optimizer steps after the clipping, and the gradients are cleared after that.",
        ),
        Hint(
            narrow,
            "The gradients were rounded to 16 bits on the way: send them in their own dtype.",
        ),
        Hint(
            ended_as_with("clips one by one"),
            "Each parameter was clipped by its own norm. One call of clip_grad_norm_ gets all parameters, and their "
            "common norm counts.",
        ),
        Hint(
            ended_as_with("always scales"),
            "The gradients were stretched to max_norm where their norm is smaller. Clipping only makes them shorter.",
        ),
        Hint(
            lambda run: run.case.n_steps > 1 and sum(calls(run.got)["bytes"]) == sum(bucket_bytes(run.case)),
            "Only the first step's gradients travelled. At the end of a step, finish() sets back the counts of missing "
            "gradients and the number of the next bucket.",
        ),
        Hint(
            lambda run: sum(calls(run.got)["bytes"]) < run.case.n_steps * sum(bucket_bytes(run.case)),
            "Some gradients never travelled: a bucket in which one is missing does not leave by itself. finish() sends "
            "it, with zeros where .grad is None.",
        ),
        Hint(
            lambda run: sum(calls(run.got)["bytes"]) == run.case.n_steps * sum(twice(run.case)),
            "The weight that two layers share travels twice. It is one parameter: module.parameters() lists it once.",
        ),
        Hint(
            stand_still,
            "Some weights never moved: what completed their bucket travelled as zeros. A hook of register_hook runs "
            "before .grad is there; register_post_accumulate_grad_hook runs after.",
        ),
        Hint(
            skipped_stands_still,
            "A block without a gradient on a rank stood still there and moved on the others. finish() puts the average "
            "into .grad where it is None, too.",
        ),
        Hint(
            lambda run: len(calls(run.got)["bytes"]) > run.case.n_steps * calls_a_step(run.case),
            "Too many calls: one all-reduce for each bucket and step. Fill a bucket until it reaches its cap, and only "
            "then begin the next.",
        ),
        Hint(
            lambda run: not any(calls(run.got)["in_backward"]) and as_in_one_process(run) is None,
            "Every all-reduce starts after the last gradient. Start a bucket's in the hook of the gradient that "
            "completes it; the buckets begin at the last layer, whose gradients come first.",
        ),
        Hint(
            one_at_a_time,
            "On some ranks buckets leave late. When a bucket is complete, those behind it may have been complete for "
            "some time: in the hook, send as long as the next bucket is complete (`while`, not `if`).",
        ),
        Hint(
            lambda run: late_from_the_second_step_on(run.case, calls(run.got)["in_backward"]),
            "In the first step the buckets leave in time, in the next ones only at the end: finish() has to set back "
            "the counts of missing gradients.",
        ),
        Hint(
            lambda run: any(calls(run.got)["in_backward"]) and not any(calls(run.got)["hides"]),
            "Each all-reduce is waited for where it starts, so the backward pass stands still. Start it with "
            "async_op=True in the hook, and call wait() after the backward pass.",
        ),
    ),
)
