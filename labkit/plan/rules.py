"""The rules that every plan has to keep, whatever fits: each by its name, with the figures that break it."""

from __future__ import annotations

from labkit.plan.things import RECOMPUTATIONS, Cluster, Model, Plan

DEGREES = ("tensor", "pipeline", "data", "context", "expert", "micro_batch")


def divisors(n: int) -> list[int]:
    """All whole numbers that divide n, the smallest first.

    >>> divisors(12)
    [1, 2, 3, 4, 6, 12]
    """
    small = [i for i in range(1, int(n**0.5) + 1) if n % i == 0]
    return small + [n // i for i in reversed(small) if i * i != n]


def broken_rules(model: Model, cluster: Cluster, plan: Plan) -> dict[str, str]:
    """What is wrong with a plan before anybody asks about memory: by the name of a rule, the figures. Empty if nothing.

    >>> from labkit.plan import LLAMA_8B, leonardo
    >>> broken_rules(LLAMA_8B, leonardo(2), Plan(tensor=4, data=4))
    {'devices': 't x p x d x c = 4 x 1 x 4 x 1 = 16, and the cluster has 8'}
    """
    degrees = {name: getattr(plan, name) for name in DEGREES}
    wrong = [f"{name} = {size!r}" for name, size in degrees.items() if type(size) is not int or size < 1]
    if wrong:
        return {"numbers": f"{', '.join(wrong)}: whole numbers of at least 1 are asked for"}
    t, p, d, c, e, b = degrees.values()
    n, per_node = cluster.n_devices, cluster.devices_per_node
    found = {}
    if plan.n_devices != n:
        found["devices"] = f"t x p x d x c = {t} x {p} x {d} x {c} = {plan.n_devices}, and the cluster has {n}"
    if per_node % t:
        found["node"] = f"tensor groups of t = {t} do not fill nodes of {per_node} evenly"
    if model.n_kv_heads % t:
        found["heads"] = f"t = {t} does not divide the {model.n_kv_heads} heads of keys and values"
    if model.n_layers % p:
        found["layers"] = f"p = {p} does not divide the {model.n_layers} layers"
    if model.seq_len % (2 * c * t):
        found["sequence"] = f"2 x c x t = {2 * c * t} does not divide the {model.seq_len} tokens of a text"
    if model.n_experts % e:
        found["experts"] = f"e = {e} does not divide the number of experts of a layer, {model.n_experts}"
    if d % e:
        found["expert ranks"] = f"e = {e} does not divide d = {d}"
    if model.global_batch % (d * b):
        found["batch"] = (
            f"d x micro-batch = {d} x {b} = {d * b} does not divide the {model.global_batch} sequences of a step"
        )
    if type(plan.sharding) is not int or not 0 <= plan.sharding <= 3:
        found["sharding"] = f"sharding = {plan.sharding!r} is not one of 0, 1, 2, 3"
    if plan.recompute not in RECOMPUTATIONS:
        found["recompute"] = f"recompute = {plan.recompute!r} is not one of {', '.join(RECOMPUTATIONS)}"
    return found
