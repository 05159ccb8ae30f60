"""Lab 01: the tensors that a layer of a Llama makes of a token, in order and to scale; which are kept is not said."""

from __future__ import annotations

from typing import Protocol

from matplotlib.figure import Figure

from labkit.figures.canvas import OTHER, TRUTH, YOURS, new_figure


class LlamaShape(Protocol):
    """The fields of transformers' `LlamaConfig` that say how wide a layer's tensors are."""

    hidden_size: int
    intermediate_size: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int


RESIDUAL, ATTENTION, MLP = TRUTH, YOURS, OTHER


def llama_layer(config: LlamaShape) -> Figure:
    """A bar for each tensor, from the layer's input at the top to its output: as long as the numbers it has a token."""
    rows = tensors_of_a_layer(config)
    figure, axes = new_figure(8.0, 4.6)
    for place, (name, made_by, width, color) in enumerate(rows):
        axes.barh(place, width, height=0.68, color=color)
        axes.text(width, place, f"  {name}, {width:,}", va="center", fontsize=9)
        axes.text(-0.02, place, made_by, va="center", ha="right", fontsize=9, transform=axes.get_yaxis_transform())
    axes.set_yticks([])
    axes.invert_yaxis()
    axes.set_xlim(0, 1.32 * max(width for _, _, width, _ in rows))
    axes.set_xlabel("numbers for each token")
    axes.grid(False, axis="y")
    axes.set_title("one layer, from top to bottom", loc="left", fontsize=10)
    return figure


def tensors_of_a_layer(config: LlamaShape) -> list[tuple[str, str, int, str]]:
    """(name, operation that makes it, numbers for each token, colour) in the order in which they are made."""
    h, f = config.hidden_size, config.intermediate_size
    queries, keys = config.num_attention_heads * config.head_dim, config.num_key_value_heads * config.head_dim
    return [
        ("x", "layer before", h, RESIDUAL),
        ("n", "norm", h, ATTENTION),
        ("q", "q_proj(n)", queries, ATTENTION),
        ("k", "k_proj(n)", keys, ATTENTION),
        ("v", "v_proj(n)", keys, ATTENTION),
        ("attended", "attention(q, k, v)", queries, ATTENTION),
        ("x", "x + o_proj(attended)", h, RESIDUAL),
        ("m", "norm", h, MLP),
        ("gate", "gate_proj(m)", f, MLP),
        ("s", "silu(gate)", f, MLP),
        ("up", "up_proj(m)", f, MLP),
        ("p", "s * up", f, MLP),
        ("x", "x + down_proj(p)", h, RESIDUAL),
    ]
