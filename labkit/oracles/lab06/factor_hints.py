"""Lab 06: what is said of a wrong Adafactor, by the mistake that makes the same values.

What a mistake makes of the values is played by `factor_mistakes`.
"""

from __future__ import annotations

from labkit.oracles.lab06.factor_mistakes import moved_as
from labkit.oracles.lab06.histories import STOPS_AT_NONE, nothing_moved, zeros_for_none
from labkit.spec import Hint

DIAGNOSE = (
    Hint(nothing_moved, "No weight has moved: change the parameter in place, with p.sub_(...)."),
    Hint(moved_as("uphill"), "The weights climb up the gradient. Subtract the step."),
    Hint(
        moved_as("state lost"),
        "After load_state_dict the moments began at zero again: keep everything in self.state[p].",
    ),
    Hint(
        moved_as("one count for all", "one count in the group"),
        "All parameters share one count of steps. Each has a count of its own, in self.state[p]: one whose p.grad "
        "is None makes no step, and a loaded optimizer goes on from the count that was saved.",
    ),
    Hint(moved_as("zeros in place of None"), zeros_for_none("means")),
    Hint(moved_as("stops at None"), STOPS_AT_NONE),
    Hint(
        moved_as("first group"),
        "Every parameter was updated with the settings of one group. lr, beta2_decay, eps and d are those of the "
        'group that the parameter is in: group["lr"].',
    ),
    Hint(
        moved_as("means not kept", "factors not kept"),
        "The new means are not kept: they go into self.state[p], in place with lerp_ or by an assignment there.",
    ),
    Hint(
        moved_as("divided row kept", "root kept", "bounded estimate kept"),
        "What self.state keeps was overwritten by a value worked out from it, and the next step goes on from "
        "there. Only the running means themselves are kept: divide, bound and take roots in new tensors.",
    ),
    Hint(
        moved_as("full"),
        "The second moment is that of every element, as Adam's. Adafactor keeps the means over rows and over "
        "columns alone, and puts an estimate together from them.",
    ),
    Hint(
        moved_as("matrices alone"),
        "A parameter with three axes was not factored: it is a stack of matrices, and has rows and columns in its "
        "last two axes.",
    ),
    Hint(
        moved_as("columns over rows", "rows over columns"),
        "One factor was divided by the other. The estimate is their product, divided by the mean of the rows.",
    ),
    Hint(
        moved_as("row alone", "column alone"),
        "The mean was taken over an axis that has one element left, so one factor divides itself out. row has the "
        "shape (..., n, 1): its mean is over axis -2.",
    ),
    Hint(
        moved_as("root of the product"),
        "The estimate is row times column divided by the mean of the row, not the root of their product.",
    ),
    Hint(
        moved_as("sums for means"),
        "Rows and columns hold sums. They are means, or the estimate is too large by the length of a row.",
    ),
    Hint(
        moved_as("sums of columns", "sums of rows", "divided by the sum"),
        "A sum stands where a mean belongs. The row, the column and what their product is divided by are three means.",
    ),
    Hint(
        moved_as("mean of the row not bounded"),
        "The mean of the rows is at least the first number of eps: row.mean(-2, keepdim=True).clamp(min=eps1).",
    ),
    Hint(
        moved_as("eps1 not squared"),
        "The estimate is at least eps1 squared, because its root is at least eps1.",
    ),
    Hint(
        moved_as("eps1 added to the estimate"),
        "eps1 squared was added to the estimate. It only bounds it from below: clamp(min=eps1**2).",
    ),
    Hint(
        moved_as("eps1 added to the root", "eps1 added below the root", "eps1 added to the mean"),
        "eps1 was added. It only bounds two things from below: the mean of the rows, clamp(min=eps1), and, "
        "squared, the estimate, clamp(min=eps1**2).",
    ),
    Hint(
        moved_as("rows bounded"),
        "The rows themselves were bounded by eps1. Only their mean is at least eps1: "
        "row.mean(-2, keepdim=True).clamp(min=eps1).",
    ),
    Hint(
        moved_as("no bound on the estimate"),
        "The estimate has no bound: it is at least eps1 squared, clamp(min=eps1**2).",
    ),
    Hint(
        moved_as("eps swapped"),
        "The two numbers of eps are swapped: the first bounds the estimate, the second the rms of the parameter.",
    ),
    Hint(
        moved_as("eps1 added to squares"),
        "eps1 was added to the squares, as in the paper. Here it bounds two things from below: the mean of the "
        "rows, and, squared, the estimate.",
    ),
    Hint(
        moved_as("no division"),
        "The estimate is row times column, and not divided by the mean of the row: both factors hold the overall "
        "size, so it counts twice.",
    ),
    Hint(
        moved_as("one mean for all"),
        "The mean of the row factor was taken over all matrices of a parameter with three axes. Each matrix is "
        "divided by the mean of its own: row.mean(-2, keepdim=True).",
    ),
    Hint(
        moved_as("first two axes"),
        "A parameter with three axes was factored over its first two. The rows and columns are the last two axes.",
    ),
    Hint(
        moved_as("no clipping"),
        "The update is not clipped: where its root mean square is above d, divide it by rms / d, before it is "
        "multiplied by the learning rate.",
    ),
    Hint(
        moved_as("step clipped", "update clipped after the rate"),
        "The step is clipped. Clip the update, p.grad / estimate.sqrt(), before it is multiplied by the learning "
        "rate and the rms of the parameter.",
    ),
    Hint(
        moved_as("always normalized"),
        "The update is always divided by its root mean square. Clipping makes it smaller only: the divisor is "
        "max(1, rms / d).",
    ),
    Hint(
        moved_as("least for most in clipping"),
        "Clipping divides by max(1, rms / d). Your divisor is the smaller of the two, so that small updates are "
        "made larger and large ones stay.",
    ),
    Hint(
        moved_as("maximum before d", "maximum with d", "times d"),
        "d is at the wrong place: the divisor of the update is max(1, rms / d), so that an update whose rms is at "
        "most d stays as it is.",
    ),
    Hint(
        moved_as("clipping multiplies"),
        "The update was multiplied by max(1, rms / d), which makes a large one larger still: divide.",
    ),
    Hint(
        moved_as("each element clipped"),
        "Each element was bounded for itself. Clipping divides the whole update by one number, max(1, rms / d), so "
        "that its direction stays.",
    ),
    Hint(
        moved_as("each matrix clipped", "scale of each matrix"),
        "Each matrix of a stack has an rms of its own here. rms is taken over a whole parameter.",
    ),
    Hint(
        moved_as("mean magnitude in clipping"),
        "The update is clipped by its mean magnitude. The root mean square is x.square().mean().sqrt().",
    ),
    Hint(
        moved_as("largest in clipping"),
        "The update is clipped by its largest element. Clipping takes the root mean square, x.square().mean().sqrt().",
    ),
    Hint(
        moved_as(*(f"{kind}deviation {of}" for kind in ("", "unbiased ") for of in ("in clipping", "for the scale"))),
        "The standard deviation was taken for the root mean square. They differ where the mean is not 0: "
        "x.square().mean().sqrt().",
    ),
    Hint(
        moved_as("clipped by the gradient"),
        "This rms is that of the gradient. Clipping takes that of the update, p.grad / estimate.sqrt().",
    ),
    Hint(
        moved_as("d left out"),
        "d is missing: the divisor of the update is max(1, rms / d).",
    ),
    Hint(
        moved_as("norm for rms", "norm for the scale", "both norms"),
        "The norm was taken for the root mean square. The root mean square is norm / sqrt(number of elements).",
    ),
    Hint(
        moved_as("mean square in clipping", "mean square for the scale"),
        "The root is missing in a root mean square: x.square().mean().sqrt().",
    ),
    Hint(
        moved_as("mean magnitude for the scale"),
        "The mean magnitude of the weights was taken. The root mean square is x.square().mean().sqrt().",
    ),
    Hint(
        moved_as("no decay of lr"),
        "The learning rate does not fall: it is min(lr, 1 / sqrt(step)).",
    ),
    Hint(
        moved_as("most of both rates"),
        "The learning rate is the smaller of lr and 1 / sqrt(step), and yours is the larger one: min, not max.",
    ),
    Hint(
        moved_as("one over step", "rate by the decay"),
        "The learning rate falls too fast: it is min(lr, 1 / sqrt(step)), with the root.",
    ),
    Hint(
        moved_as("lr times decay"),
        "The learning rate is min(lr, 1 / sqrt(step)), the smaller of the two, and not their product.",
    ),
    Hint(
        moved_as("no scale of the weight"),
        "The step does not depend on the size of the weights: it is multiplied by max(eps2, rms of the parameter), "
        "eps2 being the second number of eps.",
    ),
    Hint(
        moved_as("no least scale", "eps2 added"),
        "The step is multiplied by max(eps2, rms of the parameter), eps2 being the second number of eps: a "
        "parameter that is nearly zero can still move, and others do not notice.",
    ),
    Hint(
        moved_as("least for most in the scale"),
        "The step is multiplied by the larger of eps2 and the rms of the parameter, and yours is the smaller one: "
        "max, not min.",
    ),
    Hint(
        moved_as("scale of the update", "scale of the clipped update", "scale of the gradient"),
        "The step is relative to the size of the parameter: this rms is that of the weights, not of the update or "
        "of the gradient.",
    ),
    Hint(
        moved_as("scale after the step", "scale after the whole step"),
        "The rms of the parameter was taken after its step. Take it before the parameter moves.",
    ),
    Hint(
        moved_as("scale of the first step"),
        "The rms of the parameter is still that of the first step. Take it anew in every step.",
    ),
    Hint(
        moved_as("scale of each row"),
        "Each row has an rms of its own. A step is multiplied by one number: the rms over the whole parameter.",
    ),
    Hint(
        moved_as("new and old swapped"),
        "New and old are swapped in the running means: the new value counts step**beta2_decay, the old one the "
        "rest. In the first step the new one counts 1.",
    ),
    Hint(
        moved_as("no lr"),
        "The learning rate of the group is missing: the rate is min(lr, 1 / sqrt(step)).",
    ),
    Hint(
        moved_as("decay without its sign"),
        "The sign of beta2_decay is lost. It is -0.8, so that the new value counts step**-0.8, which falls.",
    ),
    Hint(
        moved_as("magnitude for the square"),
        "The means are of the squares of the gradients, and yours are of their magnitudes.",
    ),
    Hint(
        moved_as("one number for a vector"),
        "A vector was reduced to one mean. It is not factored: each of its elements has a second moment.",
    ),
    Hint(
        moved_as("steps from two"),
        "The running means count from 2. step is the step being taken, and counts from 1.",
    ),
    Hint(
        moved_as("steps from zero"),
        "step is the step being taken and counts from 1, in the running means as well.",
    ),
    Hint(
        moved_as("fixed beta"),
        "The running means have a fixed factor. In step t the new value counts t**beta2_decay: all of it in the "
        "first step, less and less later.",
    ),
    Hint(moved_as("no root"), "The root is missing: the gradient is divided by the root of the estimate."),
    Hint(
        moved_as("root multiplied"),
        "The gradient is multiplied by the root of the estimate. Divide by it: a step is about as large for small "
        "gradients as for large ones.",
    ),
    Hint(
        moved_as("eps of its own"),
        'eps is fixed in your answer. Each group brings its own pair: eps1, eps2 = group["eps"].',
    ),
)
