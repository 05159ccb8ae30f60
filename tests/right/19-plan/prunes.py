# Not every plan: micro-batches up to 8, experts within a node, and of each sharding the least recomputation that fits.
from itertools import product

from labkit.plan import Plan, broken_rules, divisors, step_time


def device_bytes(model, plan):
    stage = model.n_layers // plan.pipeline
    first = model.embedding_params * (1 + (plan.pipeline == 1))
    parameters = (stage * model.attention_params + first) / plan.tensor
    mine = stage * (model.n_experts // plan.expert) * model.expert_params / plan.tensor
    same = plan.data * plan.context
    parts = {}
    for name, size, level in (("optimizer", 12, 1), ("gradients", 2, 2), ("weights", 2, 3)):
        cut = plan.sharding >= level
        parts[name] = size * (parameters / (same if cut else 1) + mine / (same // plan.expert if cut else 1))
    tokens = plan.micro_batch * model.seq_len // plan.context // plan.tensor
    in_flight = sorted((plan.pipeline, plan.n_microbatches(model)))[0]
    parts["activations"] = tokens * model.kept_bytes(plan.recompute) * stage * in_flight
    parts["activations"] += tokens * model.kept_bytes("selective") * (plan.recompute == "full")
    return parts


def choose(model, cluster):
    def degrees():
        for context in divisors(cluster.n_devices):
            for tensor in divisors(cluster.n_devices // context):
                for pipeline in divisors(cluster.n_devices // context // tensor):
                    yield tensor, pipeline, cluster.n_devices // context // tensor // pipeline, context

    def candidates():
        experts = [e for e in divisors(model.n_experts) if e <= cluster.devices_per_node]
        for sizes, expert, micro_batch, sharding in product(degrees(), experts, range(1, 9), range(4)):
            for recompute in ("none", "selective", "full"):
                plan = Plan(*sizes, expert, micro_batch, sharding, recompute)
                if broken_rules(model, cluster, plan):
                    break
                if sum(device_bytes(model, plan).values()) <= cluster.memory_gb * 1e9:
                    yield plan
                    break

    return min(candidates(), key=lambda plan: step_time(model, cluster, plan).total)
