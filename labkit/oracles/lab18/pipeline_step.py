"""Lab 18: what is true of a training step over stages: one process's gradients, bytes, and little that is kept."""

from __future__ import annotations

import math

import torch

from labkit.compare import compare, inputs_untouched
from labkit.exercises.lab18.pipeline_step import Steps
from labkit.oracles.lab18 import step_mistakes as mistakes
from labkit.oracles.lab18.one_process import (
    first_grads,
    names_of,
    place_of_tied,
    trained,
)
from labkit.oracles.lab18.step_conditions import (
    CLOSE,
    goes_wrong_on_its_way_up,
    got_grads,
    grads_are,
    grads_of,
    loss_is,
    no_gradient_at_all,
    no_number_without_tokens,
    right_ranks,
    shown,
)
from labkit.spec import Budget, CaseRun, Hint, KiB, Observation, Oracle

ROOM_BYTES = 512 * KiB
"""For what Python and PyTorch load on their first use."""


def loss_is_right(run: CaseRun[Steps]) -> str | None:
    """A property: the last rank returns the loss of each step."""
    wanted, losses = trained(run)[0], run.got["ranks"][-1]["losses"]
    for step, (right, got) in enumerate(zip(wanted, losses, strict=True), 1):
        if got is None or not math.isclose(right, got, rel_tol=1e-4, abs_tol=1e-5):
            told = "None" if got is None else f"{got:.6g}"
            return f"in step {step} the last rank returned the loss {told}, and one process has {right:.6g}"
    return None


def loss_has_no_graph(run: CaseRun[Steps]) -> str | None:
    """A property: what the last rank returns does not keep anything of the step alive."""
    if run.got["ranks"][-1]["has_graph"]:
        return "the loss that the last rank returned is part of a graph"
    return None


loss_has_no_graph.hint = (
    "The loss that is returned was added up from tensors that autograd follows, so it keeps a part of all their "
    "graphs. Add up out.detach(), or out.item()."
)


def grads_are_right(run: CaseRun[Steps]) -> str | None:
    """A property: after the first step every parameter has the gradient of one process."""
    for rank, (got, right) in enumerate(zip(got_grads(run), shown(run, first_grads(run)), strict=True)):
        for name, mine, wanted in zip(names_of(run, rank), got, right, strict=True):
            if mine is None:
                return f"{name} of rank {rank} has no gradient after the step"
            if found := compare(wanted, mine, CLOSE):
                where = f"{name}.grad{list(found.index) if found.index else ''} of rank {rank}"
                return f"{where} is {found.got}, and one process has {found.expected}"
    return None


def tied_are_alike(run: CaseRun[Steps]) -> str | None:
    """A property: after all steps both copies of the embedding have the same bits."""
    if run.case.n_ranks == 1:
        return None
    last = run.case.n_ranks - 1
    copies = [run.got["ranks"][rank]["weights"][place_of_tied(run, rank)] for rank in (0, last)]
    if torch.equal(*copies):
        return None
    apart = float((copies[0] - copies[1]).abs().max())
    return f"after {run.case.n_steps} steps the embeddings of rank 0 and rank {last} are up to {apart:.2g} apart"


tied_are_alike.hint = (
    "Both copies of the embedding need the same gradient, to the bit: the sum of what rank 0 and the last rank found."
)


def weights_are_right(run: CaseRun[Steps]) -> str | None:
    """A property: after all steps the weights are those of one process."""
    for rank, (one, right) in enumerate(zip(run.got["ranks"], shown(run, trained(run)[1]), strict=True)):
        for name, mine, wanted in zip(names_of(run, rank), one["weights"], right, strict=True):
            if found := compare(wanted, mine, CLOSE):
                where = f"{name}{list(found.index) if found.index else ''} of rank {rank}"
                return f"after {run.case.n_steps} steps {where} is {found.got}, and in one process {found.expected}"
    return None


def keeps_no_more(run: CaseRun[Steps]) -> str | None:
    """A property: no rank keeps the activations of more micro-batches than its order has on their way."""
    for rank, one in enumerate(run.got["ranks"]):
        most = run.case.most_alive(rank)
        if one["alive"] > most:
            return (
                f"rank {rank} kept the activations of {one['alive']} micro-batches at once, and in its order at most "
                f"{most} are between F and B"
            )
    return None


keeps_no_more.hint = (
    "Run the passes in the order that is given, and free a micro-batch in its backward pass: remove its tensors from "
    "wherever you keep them, and do not ask for retain_graph."
)


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
