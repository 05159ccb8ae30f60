"""How long a step takes under a plan: a sum of terms, each from published rules and the cluster's rates.

Sources: Narayanan and others (Megatron-LM on GPU clusters, 2021) for FLOPs, bubble and the traffic of tensor and
pipeline parallelism; Korthikanti and others (2022) for sequence parallelism, in which an all-reduce becomes a
reduce-scatter and an all-gather of the same bytes, and for recomputation; Rajbhandari and others (ZeRO, 2020) for the
traffic of sharding; lab 19's own ring and all-to-all. Only the ring and the data-parallel traffic overlap with compute.

Left out: latency of messages, the optimizer's own time, uneven experts, interleaved stages, the last stage's logits,
and the network's higher levels.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from labkit.plan.links import Links
from labkit.plan.things import Cluster, Model, Plan

BYTES = 2
"""Of a weight, a gradient and an activation that travel: bfloat16."""


@dataclass(frozen=True)
class StepTime:
    """What a step's seconds go into. recomputation is no part of compute; bubble is what stages wait.

    StepTime(compute=2.0, bubble=0.5)
    """

    compute: float = 0.0
    recomputation: float = 0.0
    kernel_starts: float = 0.0
    tensor: float = 0.0
    context: float = 0.0
    experts: float = 0.0
    stages: float = 0.0
    bubble: float = 0.0
    data: float = 0.0

    @property
    def total(self) -> float:
        return sum(self.by_term().values())

    def by_term(self) -> dict[str, float]:
        """Seconds by what they go into."""
        return {field.name.replace("_", " "): getattr(self, field.name) for field in fields(self)}


def layer_flops(model: Model) -> tuple[float, float]:
    """(matrices, attention core) of one layer and token in the forward pass.

    Two FLOPs a weight; the core has two products of s x s x h, of which the causal mask hides half.
    """
    weights = model.attention_params + model.experts_per_token * model.expert_params
    return 2.0 * weights, 2.0 * model.seq_len * model.hidden


def step_time(model: Model, cluster: Cluster, plan: Plan) -> StepTime:
    """Of a plan that breaks no rule; whether it fits into memory is another question.

    Of Megatron-LM's own plan for a trillion parameters, 103 seconds were measured (its FLOPs at 163 TFLOP/s a GPU):

    >>> from labkit.plan import MEGATRON_1T, SELENE
    >>> theirs = Plan(tensor=8, pipeline=64, data=6, micro_batch=1, recompute="full")
    >>> f"{step_time(MEGATRON_1T, SELENE, theirs).total:.0f}"
    '101'
    """
    t, p, d, c = plan.tensor, plan.pipeline, plan.data, plan.context
    m, n_layers = plan.n_microbatches(model), model.n_layers / p
    tokens = plan.micro_batch * model.seq_len / c
    again = {"none": 0, "selective": 0, "full": 1}[plan.recompute]
    passes = 3 + again

    # One micro-batch in one stage; the first and the last stage share the logits' work evenly with the others.
    matrices, core = layer_flops(model)
    token_s = 1 / (t * cluster.flops_per_s)
    logits = 2.0 * model.embedding_params / p
    compute = 3 * tokens * (n_layers * (matrices + core) + logits) * token_s
    recomputation = {"none": 0.0, "selective": core, "full": matrices + core}[plan.recompute]
    recomputation *= tokens * n_layers * token_s
    starts = passes * n_layers * cluster.layer_start_s

    # Two all-reduces a layer and pass: of the activations forward, of their gradients backward, and again.
    rows_bytes = tokens * model.hidden * BYTES
    all_reduces = n_layers * (4 + 2 * again)
    tensor = all_reduces * Links(cluster, 1, t).ring_s(2 * (t - 1) / t * rows_bytes)

    # c - 1 hops of keys and values a pass, and c of their gradients, beside the attention core of this layer.
    block_bytes = 2 * rows_bytes * model.n_kv_heads / model.n_heads / t
    hop_s = Links(cluster, t, c).ring_s(block_bytes)
    core_s = tokens * core * token_s
    forward, backward = max(0.0, (c - 1) * hop_s - core_s), max(0.0, (2 * c - 1) * hop_s - 2 * core_s)
    context = n_layers * ((1 + again) * forward + backward)

    # Each token's row to its experts and back, forward and backward.
    rows_out = rows_bytes / t * model.experts_per_token
    experts = n_layers * (4 + 2 * again) * Links(cluster, t * c, plan.expert).exchange_s(rows_out)

    stages = 2 * Links(cluster, t * c * d, p).ring_s(rows_bytes / t)

    one = compute + recomputation + starts + tensor + context + experts + stages
    return StepTime(
        compute=m * compute,
        recomputation=m * recomputation,
        kernel_starts=m * starts,
        tensor=m * tensor,
        context=m * context,
        experts=m * experts,
        stages=m * stages,
        bubble=(p - 1) * one,
        data=data_s(model, cluster, plan, compute),
    )


def data_s(model: Model, cluster: Cluster, plan: Plan, compute_s: float) -> float:
    """What the reduction of gradients and the gathering of sharded weights take beyond what compute hides.

    ZeRO-0 and -1 move each gradient and each weight once a step, beside the last micro-batch's backward pass, which is
    two thirds of its compute_s. ZeRO-2 scatters gradients after every micro-batch; ZeRO-3 also gathers weights before
    each of its passes: both have all of the step's compute to hide behind.
    """
    m, layers = plan.n_microbatches(model), model.n_layers / plan.pipeline / plan.tensor
    replicas = plan.data * plan.context
    moved = {0: 2, 1: 2, 2: m + 1, 3: 3 * m}[plan.sharding]
    stride = plan.tensor
    shared = layers * model.attention_params + model.embedding_params / plan.tensor
    n_experts = layers * model.expert_params * model.n_experts / plan.expert
    seconds = 0.0
    for n_params, size, apart in (
        (shared, replicas, stride),
        (n_experts, replicas // plan.expert, stride * plan.expert),
    ):
        seconds += Links(cluster, apart, size).ring_s(moved * (size - 1) / size * n_params * BYTES)
    hidden = compute_s * (2 / 3 if plan.sharding < 2 else m)
    return max(0.0, seconds - hidden)
