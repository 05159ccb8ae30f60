"""The figures of lab 08's soft prompts: where a text looks, and how fast each method learns from few numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from matplotlib.figure import Figure

from labkit.figures.canvas import DPI, TRUTH, LabFigure

# Okabe and Ito's colours, told apart by every kind of colour vision, and a dash pattern each.
MOST = 0.6
"""Attention from which on the colour is the darkest: what a row gives to one of several prompt positions is small."""
LINES = (("#D55E00", "-"), ("#0072B2", "-"), ("#009E73", "--"), ("#CC79A7", "-."))


def attention_map(attentions: Sequence[torch.Tensor], n_prompt: int) -> Figure:
    """Mean attention of a batch, layer by layer: a row for each query position, a column for each key position.

    attentions: (batch, heads, queries, keys) of every layer, as in a model's output; texts and heads are averaged.
    With fewer queries than keys the prompt has no queries, and only the rows of the text are there.
    """
    maps = [layer.detach().float().mean((0, 1)).cpu() for layer in attentions]
    n_queries, n_keys = maps[0].shape
    n_text = n_keys - n_prompt
    height_in = 1.5 + 2.4 * n_queries / n_keys
    figure = LabFigure(figsize=(3.6 * len(maps), height_in), dpi=DPI, layout="constrained", facecolor="white")
    panels = figure.subplots(1, len(maps), squeeze=False, sharey=True)[0]
    for index, (axes, weights) in enumerate(zip(panels, maps)):
        image = axes.imshow(weights.numpy(), cmap="Blues", vmin=0, vmax=MOST, aspect="equal")
        axes.axvline(n_prompt - 0.5, color="black", linewidth=1)
        if n_queries == n_keys:
            axes.axhline(n_prompt - 0.5, color="black", linewidth=1)
        share = weights[-n_text:, :n_prompt].sum() / weights[-n_text:].sum()
        axes.set_title(f"layer {index + 1}: {share:.0%} of the text's attention\ngoes to the prompt", fontsize=10)
        axes.set_xticks(range(n_keys), [*["p"] * n_prompt, *range(1, n_text + 1)])
        names = [*range(1, n_text + 1)] if n_queries == n_text else [*["p"] * n_prompt, *range(1, n_text + 1)]
        axes.set_yticks(range(n_queries), names)
        axes.set_xlabel("key position (p: prompt)")
    panels[0].set_ylabel("query position")
    figure.colorbar(image, ax=panels, label="attention", shrink=0.9, extend="max")
    return figure


def adaptation_losses(losses: Mapping[str, Mapping[str, Sequence[float]]], before: Mapping[str, float]) -> Figure:
    """Loss against training step: a panel for each task, a line for each method.

    losses: task -> method -> loss at every step. before: task -> loss of the model as it was, drawn dashed.
    """
    figure = LabFigure(figsize=(8.4, 3.8), dpi=DPI, layout="constrained", facecolor="white")
    panels = figure.subplots(1, len(losses), squeeze=False)[0]
    for axes, (task, methods) in zip(panels, losses.items()):
        axes.axhline(before[task], color=TRUTH, linestyle=":", linewidth=1.2)
        for (method, values), (color, line) in zip(methods.items(), LINES):
            axes.plot(range(1, len(values) + 1), values, color=color, linestyle=line, linewidth=1.8, label=method)
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        if max(map(max, methods.values())) < 20 * min(map(min, methods.values())):
            axes.yaxis.set_minor_formatter(lambda value, _: f"{value:g}")
        axes.set_title(task, loc="left", fontsize=10)
        axes.set_xlabel("training step")
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(True, color="#e3e6ea", linewidth=0.8)
        axes.set_axisbelow(True)
    panels[0].set_ylabel("loss, nats per token")
    panels[-1].legend(
        frameon=False,
        fontsize=9,
        loc="upper right",
        bbox_to_anchor=(1, 0.95),
        title="dotted: before training",
        title_fontsize=9,
    )
    return figure
