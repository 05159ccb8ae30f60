"""Lab 18: what is true of a training step over stages: one process's gradients, bytes, and little that is kept."""

from __future__ import annotations

import math

from labkit.compare import inputs_untouched
from labkit.exercises.lab18.pipeline_step import Steps
from labkit.oracles.hints import any_of
from labkit.oracles.lab18 import step_mistakes as mistakes
from labkit.oracles.lab18.step_conditions import (
    goes_wrong_on_its_way_up,
    grads_are,
    grads_of,
    loss_is,
    no_gradient_at_all,
    no_number_without_tokens,
    right_ranks,
)
from labkit.oracles.lab18.step_properties import (
    grads_are_right,
    keeps_no_more,
    loss_has_no_graph,
    loss_is_right,
    tied_are_alike,
    weights_are_right,
)
from labkit.spec import Budget, CaseRun, Hint, KiB, Observation, Oracle

ROOM_BYTES = 512 * KiB
"""For what Python and PyTorch load on their first use."""


def most_bytes(run: CaseRun[Steps]) -> int:
    """Activations down and gradients up over each link, and what the embedding's two copies have to tell each other."""
    case, p = run.case, run.case.n_ranks
    elements = 2 * (p - 1) * sum(math.prod(shape) for shape in case.shapes)
    if p > 1:
        elements += 2 * case.vocab * case.width
    return max(4 * case.n_steps * elements, 1)


def most_held(run: CaseRun[Steps]) -> int:
    """Over the ranks the most of: weights, gradients and what comes back of them; for each micro-batch on its way what
    autograd keeps, the input and the output; one forward and backward pass's own tensors.
    """
    case, last = run.case, run.case.n_ranks - 1
    sizes = sorted((rows * length for rows, length in case.sizes), reverse=True)
    d, found = case.width, 0
    for rank, n_layers in enumerate(case.n_layers):
        n_params = n_layers * (8 * d * d + 7 * d) + (case.vocab * d if rank in (0, last) else 0) + 2 * d
        kept, passing = (10 * d + 2) * n_layers + 2 * d, 14 * d
        if rank == last:
            kept, passing = kept + d + case.vocab + 4, passing + 3 * case.vocab
        n_elements = 4 * n_params + kept * sum(sizes[: case.most_alive(rank)]) + passing * sizes[0]
        found = max(found, 4 * n_elements)
    return int(1.05 * found) + ROOM_BYTES


def fact(run: CaseRun[Steps]) -> str | None:
    """Which stages are right."""
    right = right_ranks(run)
    if all(right) or len(right) == 1:
        return None
    told = [f"rank {rank}: {'right' if one else 'wrong'}" for rank, one in enumerate(right)]
    return f"gradients after the first step: {', '.join(told)}"


def in_words(run: Observation) -> str:
    case = run.case
    sizes = ", ".join(f"{rows} x {length}" for rows, length in case.sizes[:5])
    more = ", ..." if len(case.sizes) > 5 else ""
    what = f"{case.name} on {case.n_ranks} rank{'s' * (case.n_ranks > 1)}, micro-batches of {sizes}{more} tokens"
    if case.all_ignored >= 0:
        what += f" (in micro-batch {case.all_ignored} no token counts)"
    return f"{case.n_steps} step{'s' * (case.n_steps > 1)}: {what}"


PIPELINE_STEP = Oracle(
    id="18-pipeline-step",
    call=in_words,
    judge=(
        inputs_untouched,
        grads_are_right,
        loss_is_right,
        tied_are_alike,
        weights_are_right,
        keeps_no_more,
        loss_has_no_graph,
    ),
    axis="numbers of stages and micro-batches, texts of other lengths, and orders",
    fact=fact,
    errors={
        "never called wait": "Call wait() on what isend and irecv return, before the step ends.",
        "but the ranks are": "Activations come from the rank before and go to the next one, gradients the other way. "
        "Rank 0 has none before it, and the last rank has none after it.",
        "deadlock: to receive": "Two ranks wait for each other: comm.send returns only once its receiver has asked for "
        "the message. Start each message with comm.isend, and wait() for all of them at the end of the step.",
        "deadlock: for a message from": "Every rank that is named waits for a message. Either a message is missing, or "
        "a rank sends it only after a message that it waits for itself. For each micro-batch an activation goes to the "
        "next rank, and a gradient back to the rank before.",
        "grad can be implicitly created": "Only the loss is a single number. On all other ranks call "
        "out.backward(gradient) with the gradient that was received from the next rank.",
        "does not require grad": "Autograd has no graph for this tensor. Keep the output itself for the backward pass, "
        "not a detached copy of it, and call requires_grad_() on what was received before it goes into the stage.",
        "to send a NoneType": "None was given where a tensor is sent. If it is the x.grad of a stage's input x: call "
        "requires_grad_() on a received tensor before it goes into the stage.",
        " receives it into ": "A message does not fit into the tensor that receives it. Micro-batches may have "
        "different shapes: shapes[k] is that of micro-batch k, for its activation and its gradient. Or the passes are "
        "not run in the order that is given.",
        "Mismatch in shape": "This gradient belongs to another micro-batch: keep each micro-batch's tensors under its "
        "number, and receive in the order that is given.",
        "'NoneType' object has no attribute 'grad'": "If this is stage.tied_weight.grad: the ranks between the first "
        "and the last have no copy of the embedding. Only the two ends add up its gradient, in a group of their own.",
        "'NoneType' object has no attribute 'all_reduce'": "comm.new_group returns None on the ranks that are not in "
        "the group. They call it like all others, and have nothing to add up.",
        "in which a rank comes twice": "A single rank has one copy of the embedding and uses it twice, and autograd "
        "has already added up both gradients: there is nothing to exchange.",
        "Expected target size": "F.cross_entropy wants the classes in dimension 1, and the logits have them in the "
        "last one, after rows and length. Flatten both: logits.flatten(0, 1) and targets[k].flatten().",
        "a second time": "A backward pass frees what the forward pass has kept. Each micro-batch has a graph of its "
        "own: run backward on it once.",
    },
    budgets=(
        Budget(
            "bytes_total",
            most_bytes,
            "Too many bytes. Over each link one activation goes down and one gradient up for each micro-batch. The "
            "embedding's gradient travels once a step, between the first and the last rank alone.",
        ),
        Budget(
            "peak_bytes",
            most_held,
            "Too much is kept. When a micro-batch's backward pass is done, nobody should refer to its input or output "
            "any more.",
        ),
    ),
    diagnose=(
        Hint(
            no_number_without_tokens,
            "In one micro-batch no token counts. The mean over no tokens is 0/0, NaN, whatever it is multiplied by. "
            "Take the sum over the tokens of a micro-batch (reduction='sum').",
        ),
        Hint(
            grads_are(mistakes.mean_of_means),
            "This is the mean over micro-batches of their means. Micro-batches have different numbers of tokens: take "
            "the sum over a micro-batch's tokens, and divide by the number of tokens in the whole batch.",
        ),
        Hint(
            grads_are(mistakes.sum_of_means),
            "Every micro-batch's loss is a mean over its own tokens. Take the sum over them (reduction='sum'), and "
            "divide by the number of tokens in the whole batch.",
        ),
        Hint(
            grads_are(mistakes.scaled_twice),
            "This is scaled twice: divided by the number of tokens of the batch, and by the number of micro-batches "
            "as well. The first is enough.",
        ),
        Hint(
            grads_are(mistakes.never_divided),
            "This is the gradient of the sum over all tokens. Divide by how many there are in the batch.",
        ),
        Hint(
            grads_are(mistakes.counts_ignored),
            "A target of -100 does not count, also not in the number of tokens that the sum is divided by.",
        ),
        Hint(
            grads_are(mistakes.last_alone),
            "Only the last micro-batch's gradient is left. Gradients of micro-batches add up: clear none between them.",
        ),
        Hint(
            any_of(grads_of(mistakes.shifted), grads_of(mistakes.shifted_and_counted)),
            "The logits are compared with the targets of the next place. targets[k] are already what they should "
            "predict, at the same place: shift nothing.",
        ),
        Hint(
            grads_of(mistakes.softmaxed),
            "F.cross_entropy takes logits and makes probabilities of them itself: leave the softmax out.",
        ),
        Hint(
            grads_are(tie=mistakes.not_tied),
            "The tied embedding's gradient is that of each rank's own use of it. The first and the last rank both "
            "need the sum of the two, or the two copies drift apart.",
        ),
        Hint(
            grads_are(tie=mistakes.averaged),
            "The tied embedding's gradient is the mean of the two ranks' gradients. Both are uses of one matrix in one "
            "loss: they add up.",
        ),
        Hint(
            grads_are(tie=mistakes.first_alone_has_both),
            "The last rank's embedding has the gradient of its own use alone. Both ranks need the sum.",
        ),
        Hint(
            grads_are(tie=mistakes.last_alone_has_both),
            "Rank 0's embedding has the gradient of its own use alone. Both ranks need the sum.",
        ),
        Hint(
            grads_of(mistakes.tied_after_every_micro_batch),
            "The embedding's gradients are added up after every micro-batch, and what has been added up goes into the "
            "next sum again. Add them up once, at the end of the step.",
        ),
        Hint(
            grads_of(mistakes.newest_first),
            "Gradients were combined with the activations of other micro-batches: a backward pass took the micro-batch "
            "that went forward last. Keep each one under its number, and take the one that the order names.",
        ),
        Hint(
            no_gradient_at_all,
            "A parameter has no gradient: each backward pass begins with out.backward(...), on every rank.",
        ),
        Hint(
            loss_is(mistakes.never_divided),
            "The gradients are right, but the loss that is returned is a sum. Return what you call backward on, "
            "added up over the micro-batches.",
        ),
        Hint(
            loss_is(mistakes.last_forward),
            "The gradients are right, but the loss that is returned is that of the last micro-batch alone.",
        ),
        Hint(
            goes_wrong_on_its_way_up,
            "The last rank's gradients are right, and those of an earlier one are not: look at what goes up to the "
            "rank before. It has to be x.grad, the gradient of the loss with respect to the activation x that a rank "
            "has received, of the micro-batch that the order names.",
        ),
    ),
)
