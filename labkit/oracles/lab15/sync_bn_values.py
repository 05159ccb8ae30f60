"""Lab 15: batch normalization of all rows in one batch, by PyTorch, and how close float32 comes to it."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F

from labkit.exercises.lab15.sync_bn import EPS, MOMENTUM, Rows
from labkit.spec import CaseRun, Tolerance


def one_process(run: CaseRun[Rows]) -> dict[str, Any]:
    """All rows in one batch, in float64; each rank's share of the gradient of weight and bias is that of its rows."""
    tree = run.tree
    x = torch.cat([part["x"] for part in tree["ranks"]]).double().requires_grad_()
    names = ("weight", "bias", "running_mean", "running_var")
    weight, bias, running_mean, running_var = (tree[name].double() for name in names)
    weights, biases = ([value.clone().requires_grad_() for _ in tree["ranks"]] for value in (weight, bias))
    normalized = F.batch_norm(x, running_mean, running_var, None, None, True, MOMENTUM, EPS)
    outs = [
        rows * one + other
        for rows, one, other in zip(normalized.split(list(run.case.rows)), weights, biases, strict=True)
    ]
    torch.autograd.backward(outs, [part["grad"].double() for part in tree["ranks"]])
    return {
        "ranks": [
            {
                "out": out.detach().float(),
                "x_grad": x_grad.float(),
                "weight_grad": one.grad.float(),
                "bias_grad": other.grad.float(),
                "running_mean": running_mean.float(),
                "running_var": running_var.float(),
            }
            for out, x_grad, one, other in zip(outs, x.grad.split(list(run.case.rows)), weights, biases, strict=True)
        ]
    }


def close(run: CaseRun[Rows]) -> Tolerance:
    """float32 rounds mean and x alike, and the mean may be thousands of standard deviations."""
    error = 1e-4 + 5e-6 * abs(run.case.mean)
    return Tolerance(atol=error, rtol=error)
