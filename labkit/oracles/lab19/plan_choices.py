"""Lab 19: whether a chosen plan is one, fits and is fast, and what is wrong with it if not."""

from __future__ import annotations

from typing import Any

from labkit.exercises.lab19.plan import Planned, as_fields
from labkit.oracles.hints import Condition, once
from labkit.oracles.lab19.plan_counts import close, is_held_right
from labkit.oracles.lab19.plan_memory import device_bytes, in_gb
from labkit.oracles.lab19.plan_search import (
    Estimate,
    all_plans,
    all_that_fit,
    estimate,
    fastest,
    fastest_by_value,
    neighbours,
    seconds_where_each_fits,
)
from labkit.plan import Plan, broken_rules
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Rivals

NEAR = 0.1
"""So much longer than the fastest plan's a step may take."""


@once
def chosen(run: CaseRun[Planned]) -> Plan:
    """Raises TypeError where it is none."""
    return Plan(**run.got["plan"])


@once
def broken(run: CaseRun[Planned]) -> dict[str, str]:
    """The rules that the chosen plan breaks."""
    return broken_rules(run.case.the_model, run.case.the_cluster, chosen(run))


@once
def estimated(run: CaseRun[Planned]) -> Estimate:
    """Of the chosen plan, which breaks no rule."""
    return estimate(run.case.the_model, run.case.the_cluster, chosen(run))


@once
def best(run: CaseRun[Planned]) -> Estimate:
    """The fastest plan that fits. ValueError where none does."""
    found = fastest(run.case.the_model, run.case.the_cluster)
    if found is None:
        raise ValueError(f"no plan of {run.case.the_model.name} fits on {run.case.the_cluster.name}")
    return found


def plan_is_good(run: CaseRun[Planned]) -> str | None:
    """A property: the plan breaks no rule, fits, and takes at most 10 % longer than the fastest that does."""
    if run.got["plan"] is None:
        return "device_bytes is right, and choose is still blank"
    if not isinstance(run.got["plan"], dict):
        return f"choose returned {run.got['plan']}, and a Plan is asked for"
    case, plan = run.case, chosen(run)
    if broken(run):
        rules = "; ".join(f"{name}: {figures}" for name, figures in broken(run).items())
        return f"choose returned {plan}, which breaks a rule. {rules}"
    found = estimated(run)
    if found.n_bytes > case.the_cluster.memory_bytes:
        return f"choose returned {plan}, which does not fit: {in_gb(found.held, case.the_cluster.memory_gb)}"
    least = best(run).seconds
    if found.seconds > (1 + NEAR) * least:
        term, more = slowest_term(run)
        return (
            f"choose returned {plan}. A step takes {found.seconds:.3g} s, {found.seconds / least:.2f} times the "
            f"{least:.3g} s of the fastest that fits (1.10 is allowed); of these, {more:.3g} s more {term}"
        )
    return None


def slowest_term(run: CaseRun[Planned]) -> tuple[str, float]:
    """What takes the most seconds more than in the fastest plan, and how many."""
    mine, theirs = estimated(run).time.by_term(), best(run).time.by_term()
    return max(((term, mine[term] - theirs[term]) for term in mine), key=lambda pair: pair[1])


# Hints ----------------------------------------------------------------------------------------------------------------

RULE_HINTS = {
    "devices": "The degrees do not multiply to the number of devices. Choose three of them, and let the fourth follow: "
    "d = n_devices / (t x p x c). Check the plan with broken_rules.",
    "node": "A tensor group leaves its node. It communicates in every layer and cannot wait for the network: t has to "
    "divide cluster.devices_per_node.",
    "heads": "A rank of a tensor group needs whole heads of keys and values: t has to divide n_kv_heads.",
    "layers": "A stage needs whole layers: p has to divide n_layers.",
    "experts": "A rank needs whole experts: e has to divide n_experts, and a dense model has one.",
    "expert ranks": "The experts are shared among data-parallel ranks: e has to divide d.",
    "batch": "The sequences of a step do not divide among the replicas and their micro-batches: d x micro_batch has to "
    "divide global_batch.",
    "sequence": "A text has to be cut into 2 x c x t equal parts: zigzag has 2 c chunks, and sequence parallelism cuts "
    "these by t.",
    "recompute": 'recompute is "none", "selective" or "full".',
}

KNOB_HINTS = {
    "recompute": "Only the recomputation is wrong: with another value of recompute the same plan fits and is fast "
    "enough. Computing again costs time, and is worth it only where the activations do not fit otherwise.",
    "sharding": "Only the sharding is wrong: with another level of ZeRO the same plan fits and is fast enough.",
    "micro_batch": "Only the micro-batch is wrong: with another size the same plan fits and is fast enough. A larger "
    "one has fewer kernels to start, but more activations and a larger bubble.",
}

FIELD_HINTS = {
    name: f"Your plan is the fastest of those with the same {words}, and there are faster ones with another: did you "
    "try them all?"
    for name, words in {
        "tensor": "t",
        "pipeline": "p",
        "data": "d",
        "context": "c",
        "expert": "e",
        "micro_batch": "micro-batch",
        "sharding": "level of ZeRO",
        "recompute": "recomputation",
    }.items()
}

TERM_HINTS = {
    "bubble": "Most of the lost time is bubble, (p - 1) / m of the rest. Fewer stages or smaller micro-batches shrink "
    "it. Does your choice use the whole of step_time?",
    "tensor": "Most of the lost time is the all-reduces of tensor parallelism, which nothing hides. A smaller t has "
    "less of them, and ZeRO, stages or context parallelism can make room in its place.",
    "recomputation": 'Most of the lost time is recomputation. Make room for the activations in another way: "full" '
    "costs a whole forward pass.",
    "data": "Most of the lost time is data-parallel communication that compute does not hide: ZeRO-2 and ZeRO-3 pay it "
    "for every micro-batch. A lower level may fit if stages or tensor parallelism cut the weights.",
    "context": "Most of the lost time is the ring of context parallelism: blocks of keys and values are too short to "
    "be hidden behind the work on them.",
    "experts": "Most of the lost time is the experts' all-to-all, once more in every layer. A smaller e, or one that "
    "stays in a node, has less of it.",
    "kernel starts": "Most of the lost time is kernels that start: many layers run on very few tokens. A larger "
    "micro-batch has fewer of them.",
    "stages": "Most of the lost time is what stages send to each other: p is large for so small a share of the work.",
}


def rule_is(name: str) -> Condition:
    return lambda run: name in broken(run)


def ignores_memory(run: CaseRun[Planned]) -> bool:
    """The plan does not fit and is faster than any that does, though device_bytes is right."""
    found = estimated(run)
    return (
        is_held_right(run)
        and not broken(run)
        and found.n_bytes > run.case.the_cluster.memory_bytes
        and found.seconds < best(run).seconds
    )


def does_not_fit(run: CaseRun[Planned]) -> bool:
    return is_held_right(run) and not broken(run) and estimated(run).n_bytes > run.case.the_cluster.memory_bytes


def fits_in_gib(run: CaseRun[Planned]) -> bool:
    """What the plan needs is more than the device's GB, and not more than as many GiB."""
    return does_not_fit(run) and estimated(run).n_bytes <= run.case.the_cluster.memory_gb * 2**30


def each_fits(run: CaseRun[Planned]) -> bool:
    """The plan is the fastest of all whose categories fit each by itself, and together they do not."""
    if not does_not_fit(run) or max(estimated(run).held.values()) > run.case.the_cluster.memory_bytes:
        return False
    return close(estimated(run).seconds, seconds_where_each_fits(run.case.the_model, run.case.the_cluster))


def is_slow(run: CaseRun[Planned]) -> bool:
    """The plan breaks no rule and fits, and a step takes too long."""
    if not is_held_right(run) or broken(run) or does_not_fit(run):
        return False
    return estimated(run).seconds > (1 + NEAR) * best(run).seconds


def least_memory(run: CaseRun[Planned]) -> bool:
    """The slow plan holds as little as any."""
    model, cluster = run.case.the_model, run.case.the_cluster
    least = min(sum(device_bytes(model, plan).values()) for plan in all_plans(model, cluster))
    return is_slow(run) and close(estimated(run).n_bytes, least)


def slowest(run: CaseRun[Planned]) -> bool:
    """No plan that fits takes longer."""
    found = max(one.seconds for one in all_that_fit(run.case.the_model, run.case.the_cluster))
    return is_slow(run) and close(estimated(run).seconds, found)


def found_none(run: CaseRun[Planned]) -> bool:
    """choose returned None, where a plan fits."""
    return run.got["plan"] == as_fields(None) and is_held_right(run)


def fastest_of_its_kind(name: str) -> Condition:
    """The plan is slow, and the fastest that fits among those with the same value of this field. CANNOT_TELL where
    none was found."""

    def when(run: CaseRun[Planned]) -> Any:
        if found_none(run):
            return CANNOT_TELL
        if not is_slow(run):
            return False
        found = fastest_by_value(run.case.the_model, run.case.the_cluster)[name, getattr(chosen(run), name)]
        return close(estimated(run).seconds, found.seconds)

    return when


def fastest_of_some_kind(run: CaseRun[Planned]) -> Any:
    """As `fastest_of_its_kind`, of whichever field."""
    return CANNOT_TELL if found_none(run) else any(fastest_of_its_kind(name)(run) for name in FIELD_HINTS)


def only_knob(knob: str) -> Condition:
    """With another value of this knob alone the plan, which is slow or does not fit, would pass."""

    def when(run: CaseRun[Planned]) -> bool:
        model, cluster = run.case.the_model, run.case.the_cluster
        if not (is_slow(run) or does_not_fit(run)):
            return False
        others = (estimate(model, cluster, plan) for plan in neighbours(chosen(run), model, cluster, knob))
        limit = (1 + NEAR) * best(run).seconds
        return any(one.n_bytes <= cluster.memory_bytes and one.seconds <= limit for one in others)

    return when


def mostly(term: str) -> Condition:
    """This term is the largest part of what the slow plan loses."""
    return lambda run: is_slow(run) and slowest_term(run)[0] == term


CHOICE_HINTS = (
    *(Hint(rule_is(name), text) for name, text in RULE_HINTS.items()),
    Hint(
        fits_in_gib,
        "The plan needs more than cluster.memory_bytes, but not more than memory_gb GiB. A GB has 10^9 bytes: compare "
        "with memory_bytes.",
    ),
    Hint(
        each_fits,
        "Each of the four numbers of device_bytes fits, and together they do not. Compare their *sum* with "
        "cluster.memory_bytes.",
    ),
    Hint(
        ignores_memory,
        "The plan is faster than any that fits. Add up what device_bytes returns, and leave out plans that need "
        "more than cluster.memory_bytes.",
    ),
    Hint(
        lambda run: least_memory(run) and slowest(run),
        "You chose the plan with the least memory of all, which is the slowest as well. Among plans that fit only the "
        "time counts: the shorter, the better.",
    ),
    Rivals(
        (
            Hint(
                least_memory,
                "You chose the plan with the least memory of all, and it is slow. Any plan that fits will do: among "
                "these only the time counts.",
            ),
            Hint(
                slowest,
                "You chose the slowest plan that fits. Keep the one with the smaller step_time(...).total.",
            ),
        )
    ),
    Rivals(tuple(Hint(fastest_of_its_kind(name), text) for name, text in FIELD_HINTS.items())),
    Hint(
        fastest_of_some_kind,
        "Your plan is the fastest of those that have one field in common with it, and there are faster ones with "
        "another value there. Did you try all values of every field: t, p, c, e, micro-batch, level of ZeRO and "
        "recomputation?",
    ),
    *(Hint(only_knob(name), text) for name, text in KNOB_HINTS.items()),
    Hint(
        does_not_fit,
        "device_bytes is right, and the plan needs more memory than a device has. Leave out the plans for which the "
        "sum of the four numbers is above cluster.memory_bytes.",
    ),
    Hint(
        lambda run: found_none(run) or CANNOT_TELL,
        "choose returned None, because none of the plans that it tried fits. There is always one: try all values of "
        "every field.",
    ),
    *(Hint(mostly(name), text) for name, text in TERM_HINTS.items()),
    Hint(
        is_slow,
        "Your plans fit, but are too slow. Compare step_time(...).total of all plans that fit, and try every "
        "divisor for every degree: only some thousand plans break no rule.",
    ),
)
