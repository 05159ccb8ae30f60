"""Lab 01: a training set-up as stacked bars of memory, one measure to save it after the other, and with sliders.

The amounts come from the student's own functions and are only divided among cards here; the temporary tensors of the
loss are added. The bars are sums of these parts, not the peak of a step; those of the update are left out.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace

from matplotlib.figure import Figure

from labkit.figures.canvas import TRUTH, new_figure
from labkit.spec import GiB

ParamCount = Callable[[object], int]
StateBytes = Callable[[Sequence[tuple[int, ...]], str, str], Mapping[str, int]]
ActivationBytes = Callable[[object, int, int, str, int], int]

COLORS = {
    "weights": "#0072B2",
    "master": "#56B4E9",
    "gradients": "#E69F00",
    "optimizer": "#D55E00",
    "activations": "#009E73",
    "loss": "#CC79A7",
}
"""Okabe and Ito's colours, told apart by every kind of colour vision."""
CARDS_GIB = (24, 80)


@dataclass(frozen=True)
class Plan:
    """A Llama and how it is trained, with AdamW. By default Llama-3-8B, one sequence, one card, nothing saved.

    recipe: a name that `model_state_bytes` knows; all but "fp32" compute in 16 bits. attention: "sdpa" or "eager".
    tensor_parallel: the cards that share each layer, its activations included (with sequence parallelism) and the loss.
    data_parallel: the cards that share the batch, over which ZeRO splits states. batch_size is that of one card.
    recompute: only the input of each layer is kept, and one layer at a time is computed again.
    """

    batch_size: int = 1
    seq_len: int = 1024
    hidden_size: int = 4096
    intermediate_size: int = 14336
    n_layers: int = 32
    n_heads: int = 32
    n_kv_heads: int = 8
    vocab_size: int = 128256
    recipe: str = "bf16"
    attention: str = "sdpa"
    tensor_parallel: int = 1
    data_parallel: int = 8
    zero_stage: int = 0
    recompute: bool = False

    @property
    def dtype_bytes(self) -> int:
        """Of most activations."""
        return 4 if self.recipe == "fp32" else 2

    def config(self, n_layers: int | None = None) -> SimpleNamespace:
        """The Llama, in the names of transformers, by request with another depth."""
        return SimpleNamespace(
            model_type="llama",
            hidden_size=self.hidden_size,
            intermediate_size=self.intermediate_size,
            num_hidden_layers=self.n_layers if n_layers is None else n_layers,
            num_attention_heads=self.n_heads,
            num_key_value_heads=self.n_kv_heads,
            head_dim=self.hidden_size // self.n_heads,
            vocab_size=self.vocab_size,
            tie_word_embeddings=False,
        )


def memory_parts(
    plan: Plan, param_count: ParamCount, model_state_bytes: StateBytes, activation_bytes: ActivationBytes
) -> dict[str, float]:
    """Bytes on one card by category, in the order of COLORS."""
    parts: dict[str, float] = dict(model_state_bytes([(param_count(plan.config()),)], plan.recipe, "adamw"))
    parts["activations"] = _activations(plan, activation_bytes)
    # The gradients by the log-probabilities and by the logits, both in float32.
    parts["loss"] = 8 * plan.vocab_size * plan.batch_size * plan.seq_len
    parts = {name: n_bytes / plan.tensor_parallel for name, n_bytes in parts.items()}
    # The stages of Rajbhandari and others (2020): states, then gradients, then weights.
    split = (("optimizer", "master"), ("gradients",), ("weights",))
    for names in split[: plan.zero_stage]:
        for name in names:
            parts[name] /= plan.data_parallel
    return {name: parts[name] for name in COLORS}


def _activations(plan: Plan, activation_bytes: ActivationBytes) -> float:
    def kept(n_layers: int) -> int:
        config = plan.config(n_layers)
        return activation_bytes(config, plan.batch_size, plan.seq_len, plan.attention, plan.dtype_bytes)

    if not plan.recompute:
        return kept(plan.n_layers)
    inputs = plan.n_layers * plan.batch_size * plan.seq_len * plan.hidden_size * plan.dtype_bytes
    # One layer at a time is there in full, and what the model has once.
    return kept(1) + inputs


def memory_bars(
    plan: Plan, param_count: ParamCount, model_state_bytes: StateBytes, activation_bytes: ActivationBytes
) -> Figure:
    """Stacked bars in GiB on one card: the plan without its savings, then one more of them in each bar.

    The three functions are answers of lab 01. Cards of 24 and 80 GiB are marked.
    """
    steps = _one_by_one(plan)
    figure, axes = new_figure(8.6, 2.1 + 0.5 * len(steps))
    widest = 0.0
    for row, (_, setting) in enumerate(steps):
        parts = memory_parts(setting, param_count, model_state_bytes, activation_bytes)
        left = 0.0
        for name, n_bytes in parts.items():
            axes.barh(row, n_bytes / GiB, left=left, color=COLORS[name], height=0.62, label=None if row else name)
            left += n_bytes / GiB
        axes.annotate(
            f"{left:,.1f} GiB",
            (left, row),
            (6, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
            # Readable where a card's line runs behind it.
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5},
        )
        widest = max(widest, left)
    for card_gib in CARDS_GIB:
        if 0.05 * widest < card_gib < 1.1 * widest:
            axes.axvline(card_gib, color=TRUTH, linewidth=1, linestyle="--")
            axes.annotate(
                f"{card_gib}",
                (card_gib, -0.55),
                (3, 0),
                textcoords="offset points",
                color=TRUTH,
                fontsize=8,
                va="center",
            )
    axes.set_yticks(range(len(steps)), [label for label, _ in steps])
    axes.set_ylim(len(steps) - 0.5, -0.75)
    axes.set_xlim(0, 1.16 * widest)
    axes.grid(False, axis="y")
    axes.set_xlabel("memory on one card, GiB")
    axes.set_title(_title(plan, param_count), loc="left", fontsize=10)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=len(COLORS), frameon=False)
    return figure


def _one_by_one(plan: Plan) -> list[tuple[str, Plan]]:
    """The plan without any saving, then with one more at a time."""
    setting = replace(plan, tensor_parallel=1, zero_stage=0, recompute=False)
    steps = [("one card", setting)]
    for label, change in (
        (f"+ tensor parallel, t = {plan.tensor_parallel}", {"tensor_parallel": plan.tensor_parallel}),
        (f"+ ZeRO-{plan.zero_stage} over {plan.data_parallel} cards", {"zero_stage": plan.zero_stage}),
        ("+ recomputation", {"recompute": plan.recompute}),
    ):
        changed = replace(setting, **change)
        if changed != setting:
            setting = changed
            steps.append((label, setting))
    return steps


def _title(plan: Plan, param_count: ParamCount) -> str:
    return (
        f"{param_count(plan.config()) / 1e9:.2f} B parameters, {plan.recipe}, AdamW, "
        f"{'eager' if plan.attention == 'eager' else 'fused'} attention; dashed: cards of 24 and 80 GiB\n"
        f"b = {plan.batch_size}, s = {plan.seq_len}, h = {plan.hidden_size}, h_ff = {plan.intermediate_size}, "
        f"L = {plan.n_layers}, a = {plan.n_heads}"
    )


SLIDERS: dict[str, tuple[str, Sequence[int | bool | str]]] = {
    "batch_size": ("b", (1, 2, 4, 8, 16, 32, 64, 100)),
    "seq_len": ("s", (512, 1024, 2048, 4096, 8192, 16384, 32768)),
    "hidden_size": ("h", (1024, 2048, 3072, 4096, 5120, 8192)),
    "intermediate_size": ("h_ff", (4096, 8192, 11008, 14336, 16384, 28672)),
    "n_layers": ("L", (4, 8, 16, 24, 32, 40, 64, 80)),
    "n_heads": ("a", (8, 16, 32, 64)),
    "tensor_parallel": ("t", (1, 2, 4, 8)),
    "zero_stage": ("ZeRO stage", (0, 1, 2, 3)),
    "data_parallel": ("ZeRO cards", (1, 2, 4, 8, 16, 64)),
    "recompute": ("recompute", (False, True)),
    "recipe": ("precision", ("fp32", "amp", "fp16_master", "huggingface", "bf16")),
    "attention": ("attention", ("sdpa", "eager")),
}
"""Field of Plan -> its label and the values that its slider steps through."""


def memory_sliders(
    param_count: ParamCount,
    model_state_bytes: StateBytes,
    activation_bytes: ActivationBytes,
    plan: Plan = Plan(),
) -> object:
    """`memory_bars` under a slider for each field of the plan; without ipywidgets, the figure of `plan` alone."""

    def draw(**fields: int | bool | str) -> Figure:
        # A head of keys and values for each query head at most.
        n_kv_heads = min(plan.n_kv_heads, int(fields["n_heads"]))
        setting = replace(plan, n_kv_heads=n_kv_heads, **fields)
        return memory_bars(setting, param_count, model_state_bytes, activation_bytes)

    if importlib.util.find_spec("ipywidgets") is None:
        return memory_bars(plan, param_count, model_state_bytes, activation_bytes)
    return _with_sliders(draw, plan)


def _with_sliders(draw: Callable[..., Figure], plan: Plan) -> object:
    import ipywidgets
    from IPython.display import display

    sliders = {
        name: ipywidgets.SelectionSlider(
            options=values,
            value=getattr(plan, name) if getattr(plan, name) in values else values[0],
            description=label,
            continuous_update=False,
        )
        for name, (label, values) in SLIDERS.items()
    }
    grid = ipywidgets.GridBox(
        list(sliders.values()), layout=ipywidgets.Layout(grid_template_columns="repeat(3, 310px)")
    )
    return ipywidgets.VBox([grid, ipywidgets.interactive_output(lambda **fields: display(draw(**fields)), sliders)])
