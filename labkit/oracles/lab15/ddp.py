"""Lab 15: what is true of data parallel training: one process's weights, few calls, and time that they do not take."""

from __future__ import annotations

import torch

from labkit.compare import inputs_untouched
from labkit.exercises.lab15.ddp import Job
from labkit.oracles.lab15.ddp_costs import (
    bucket_bytes,
    calls_a_step,
    most_bytes,
    most_calls,
    most_seconds,
    twice,
)
from labkit.oracles.lab15.ddp_mistakes import (
    calls,
    ended_as_with,
    late_from_the_second_step_on,
    narrow,
    nothing_moved,
    one_at_a_time,
    own_counts,
    skipped_stands_still,
    stand_still,
)
from labkit.oracles.lab15.ddp_properties import (
    buckets_let_go,
    every_gradient_there,
    identical,
    no_gradient_left,
    takes_its_time,
    well_filled,
)
from labkit.oracles.lab15.one_process import as_in_one_process
from labkit.spec import Budget, CaseRun, Hint, Oracle


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
    errors={
        "'NoneType' object has no attribute 'wait'": "all_reduce returns something to wait for only with "
        "async_op=True. Without it the call itself waits, and returns nothing.",
        "started all_reduce and never called wait()": "finish() waits for every bucket, and train_step calls it "
        "between the backward pass and the clipping.",
        "split_with_sizes expects": "What travelled is shorter than the bucket's parameters together. A parameter "
        "whose .grad is None counts as zero: put zeros of its size in its place.",
    },
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
            ended_as_with("adds to its own"),
            "The average was added to the rank's own gradient: it takes its place.",
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
            "it, with zeros where .grad is None. The last parameters form a bucket, too, also below the cap.",
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
            "A block without a gradient on a rank did not move there, and moved on the others. finish() puts the "
            "average into .grad where it is None, too.",
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
