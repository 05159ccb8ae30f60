"""What the fullest device holds under a plan, by category, and what each of many mistakes makes of it.

Rajbhandari and others, ZeRO (2020): 2 + 2 + 12 bytes a parameter, and what each level shards. Korthikanti and others
(2022): activations under tensor and sequence parallelism, and min(m, p) micro-batches alive in the first stage.
"""

from __future__ import annotations

from dataclasses import dataclass

from labkit.plan import Model, Plan

CATEGORIES = ("weights", "gradients", "optimizer", "activations")
BYTES = {"weights": 2, "gradients": 2, "optimizer": 12}
SHARDED_FROM = {"weights": 3, "gradients": 2, "optimizer": 1}


@dataclass(frozen=True)
class Rules:
    """How it is counted; each field that differs from its default is a mistake.

    Rules(context_shards=False)
    """

    sharded_from: tuple[int, int, int] = (3, 2, 1)
    levels_add_up: bool = True
    optimizer_bytes: int = 12
    context_shards: bool = True
    data_shards: bool = True
    experts_counted: bool = True
    experts_cut: bool = True
    expert_replicas: str = "shared among e"
    context_cuts_weights: bool = False
    tensor_cuts_embedding: bool = True
    input_embedding: bool = True
    output_embedding: str = "with one stage"
    pipeline_cuts_layers: bool = True
    layers_kept: str = "of the stage"
    in_flight: str = "min(m, p)"
    tensor_cuts_activations: bool = True
    context_cuts_activations: bool = True
    data_cuts_activations: bool = False
    sequences: str = "micro-batch"
    text_counts: bool = True
    working_layer: str = "of one micro-batch"


RIGHT = Rules()


def device_bytes(model: Model, plan: Plan, rules: Rules = RIGHT) -> dict[str, float]:
    """By category, of the first stage, which has the most micro-batches alive."""
    t, p, d, c, e = plan.tensor, plan.pipeline, plan.data, plan.context, plan.expert
    n_layers = model.n_layers / (p if rules.pipeline_cuts_layers else 1)
    n_embeddings = {"with one stage": 1 + (p == 1), "never": 1, "always": 2, "a share": 2 / p}[rules.output_embedding]
    n_embeddings -= not rules.input_embedding
    embedding = n_embeddings * model.embedding_params / (t if rules.tensor_cuts_embedding else 1)
    shared = n_layers * model.attention_params / t + embedding
    n_experts = model.n_experts if rules.experts_counted else 1
    experts = n_layers * model.expert_params * n_experts / (e if rules.experts_cut else 1) / t
    if rules.context_cuts_weights:
        shared, experts = shared / c, experts / c

    replicas = (d if rules.data_shards else 1) * (c if rules.context_shards else 1)
    of_experts = {"shared among e": replicas / e, "as the others": replicas, "none": 1}[rules.expert_replicas]
    found = {}
    for name, begins in zip(("weights", "gradients", "optimizer"), rules.sharded_from, strict=True):
        each = rules.optimizer_bytes if name == "optimizer" else BYTES[name]
        sharded = plan.sharding >= begins if rules.levels_add_up else plan.sharding == begins
        found[name] = each * (shared / replicas + experts / of_experts if sharded else shared + experts)

    m = plan.n_microbatches(model)
    alive = {"min(m, p)": min(m, p), "one": 1, "p": p, "m": m}[rules.in_flight]
    sequences = {"micro-batch": plan.micro_batch, "one": 1, "of the replica": model.global_batch / d}[rules.sequences]
    tokens = sequences * (model.seq_len if rules.text_counts else 1)
    tokens /= (t if rules.tensor_cuts_activations else 1) * (c if rules.context_cuts_activations else 1)
    tokens /= d if rules.data_cuts_activations else 1
    kept_layers = model.n_layers if rules.layers_kept == "of the model" else model.n_layers / p
    selective = model.kept_bytes("selective")
    working = {
        "of one micro-batch": selective,
        "never": 0,
        "of all": alive * selective,
        "of all layers": kept_layers * selective,
        "with its core": model.kept_bytes("none"),
        "without its input": selective - model.kept_bytes("full"),
    }[rules.working_layer] * (plan.recompute == "full")
    found["activations"] = tokens * (alive * kept_layers * model.kept_bytes(plan.recompute) + working)
    return found


def in_gb(held: dict[str, float], memory_gb: float) -> str:
    """ "80.3 GB of 64 GB, most of it activations (41.0 GB)" """
    most = max(held, key=held.__getitem__)
    return f"{sum(held.values()) / 1e9:.1f} GB of {memory_gb:g} GB, most of it {most} ({held[most] / 1e9:.1f} GB)"
