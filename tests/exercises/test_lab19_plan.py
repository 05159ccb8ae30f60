"""Lab 19: what a device holds adds up over all devices, the search finds what is there, and box texts name causes."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import pytest

from grading.hidden.lab19.plan import plan_cases
from labkit import exercises
from labkit.check.text import as_text
from labkit.oracles.lab19.plan_choices import NEAR
from labkit.oracles.lab19.plan_memory import Rules, device_bytes
from labkit.oracles.lab19.plan_search import all_plans, estimate, fastest, fastest_by_value
from labkit.plan import (
    LLAMA_8B,
    LLAMA_70B,
    MEGATRON_1T,
    MIXTRAL,
    P4D,
    RECOMPUTATIONS,
    SELENE,
    SIXTEEN_EXPERTS,
    Cluster,
    Model,
    Plan,
    broken_rules,
    leonardo,
    step_time,
)
from tests.exercises.harness import hidden_verdict, public_verdict, solution_of

pytestmark = pytest.mark.lab("19")

NOT_NEEDED = [("tensor", 1), ("recompute", "selective")]
"""Within 10 % in every public case, as the text says of t: hidden ones may ask for more."""
MISTAKES = (
    Rules(sharded_from=(2, 2, 1)),
    Rules(sharded_from=(3, 1, 1)),
    Rules(sharded_from=(4, 3, 2)),
    Rules(levels_add_up=False),
    Rules(experts_counted=False),
    Rules(context_shards=False),
    Rules(data_shards=False),
    Rules(experts_cut=False),
    Rules(expert_replicas="as the others"),
    Rules(context_cuts_weights=True),
    Rules(tensor_cuts_embedding=False),
    Rules(output_embedding="never"),
    Rules(output_embedding="always"),
    Rules(output_embedding="a share"),
    Rules(in_flight="one"),
    Rules(in_flight="p"),
    Rules(in_flight="m"),
    Rules(layers_kept="of the model"),
    Rules(tensor_cuts_activations=False),
    Rules(context_cuts_activations=False),
    Rules(data_cuts_activations=True),
    Rules(sequences="one"),
    Rules(sequences="of the replica"),
    Rules(working_layer="never"),
    Rules(working_layer="of all"),
    Rules(working_layer="of all layers"),
    Rules(working_layer="with its core"),
    Rules(working_layer="without its input"),
    Rules(text_counts=False),
    Rules(optimizer_bytes=16),
)

HARD_CODED = """
KNOWN = {
    "Llama-3-8B": Plan(data=16, sharding=3, recompute="selective"),
    "Llama-3-8B, long": Plan(data=4, context=16, sharding=3, recompute="selective"),
    "Llama-3-8B, small batch": Plan(pipeline=16, context=4, sharding=2),
    "Llama-3-70B": Plan(tensor=2, pipeline=8, data=2, context=4, sharding=1, recompute="selective"),
    "Mixtral-8x7B": Plan(pipeline=8, data=2, context=2, sharding=2, recompute="selective"),
    "16 experts, 10 B": Plan(data=16, expert=8, micro_batch=8, sharding=2, recompute="selective"),
    "Megatron 1T": Plan(tensor=2, pipeline=64, data=6, context=4, sharding=1, recompute="selective"),
}


def choose(model, cluster):
    return KNOWN.get(model.name, Plan(data=cluster.n_devices, sharding=3, recompute="selective"))
"""


@pytest.mark.parametrize("expert", [1, 2, 8])
def test_under_zero_3_all_devices_of_a_stage_hold_each_parameter_once(expert: int) -> None:
    """16 bytes of each, however experts are dealt."""
    plan = Plan(tensor=2, pipeline=2, data=8, context=2, expert=expert, sharding=3)
    held = device_bytes(MIXTRAL, plan)
    layers = MIXTRAL.n_layers // 2 * (MIXTRAL.attention_params + 8 * MIXTRAL.expert_params)
    states = sum(held.values()) - held["activations"]
    assert states * plan.tensor * plan.data * plan.context == pytest.approx(16 * (layers + MIXTRAL.embedding_params))


def test_one_device_holds_sixteen_bytes_a_parameter() -> None:
    held = device_bytes(LLAMA_8B, Plan())
    assert sum(held.values()) - held["activations"] == 16 * LLAMA_8B.n_params


def test_activations_are_those_of_the_paper() -> None:
    """Korthikanti and others: s b h (34 + 5 a s / h) / t a layer, and p micro-batches alive."""
    s, h, a = MEGATRON_1T.seq_len, MEGATRON_1T.hidden, MEGATRON_1T.n_heads
    plan = Plan(tensor=8, pipeline=64, data=6, micro_batch=2)
    expected = 2 * 64 * s * 2 * h * (34 + 5 * a * s / h) / 8
    assert device_bytes(MEGATRON_1T, plan)["activations"] == pytest.approx(expected)


def test_the_search_goes_over_all_plans_that_break_no_rule() -> None:
    """Against a loop over all numbers up to the number of devices."""
    model, cluster = replace(MIXTRAL, global_batch=8, n_layers=4, n_experts=2), leonardo(2)
    sizes = range(1, 9)
    loop = {
        plan
        for t in sizes
        for p in sizes
        for c in sizes
        if 8 % (t * p * c) == 0
        for e in sizes
        for b in sizes
        if not broken_rules(model, cluster, plan := Plan(t, p, 8 // (t * p * c), c, e, b))
    }
    found = list(all_plans(model, cluster))
    assert len(found) == len(set(found)) == 12 * len(loop)
    assert {replace(plan, sharding=0, recompute="none") for plan in found} == loop
    times = [one.seconds for one in (estimate(model, cluster, plan) for plan in found) if one.n_bytes <= 64e9]
    best = fastest(model, cluster)
    assert (best.seconds if best else None) == min(times, default=None)


@pytest.mark.slow
def test_a_plan_for_every_hidden_case() -> None:
    for seed in range(3):
        for case in plan_cases(Random(seed)):
            assert fastest(case.the_model, case.the_cluster) is not None
            assert not any(broken_rules(case.the_model, case.the_cluster, plan) for plan in case.the_plans)


@pytest.mark.slow
def test_every_mistake_of_counting_shows_in_some_hidden_case() -> None:
    for seed in range(4):
        held = [(case.the_model, plan) for case in plan_cases(Random(seed)) for plan in case.the_plans]
        for mistake in MISTAKES:
            assert any(device_bytes(*pair, mistake) != pytest.approx(device_bytes(*pair)) for pair in held), mistake


def test_what_the_lab_quotes() -> None:
    theirs = Plan(tensor=8, pipeline=64, data=6, recompute="full")
    selective = replace(theirs, recompute="selective")
    assert round(step_time(MEGATRON_1T, SELENE, selective).total) == 76
    assert round(sum(device_bytes(MEGATRON_1T, selective).values()) / 1e9) == 63
    four, eight = (
        step_time(LLAMA_70B, leonardo(32), Plan(t, 8, 16 // t, sharding=1, recompute="selective")) for t in (4, 8)
    )
    assert (round(eight.total / four.total, 1), round(four.tensor), round(eight.tensor)) == (2.0, 5, 96)
    held = device_bytes(LLAMA_8B, Plan(data=16))
    assert [round(n_bytes / 1e9) for n_bytes in (sum(held.values()), held["activations"])] == [521, 393]
    scores = 1 - LLAMA_8B.kept_bytes("selective") / LLAMA_8B.kept_bytes("none")
    assert scores == pytest.approx(7 / 8, abs=0.005)
    taken = step_time(LLAMA_8B, leonardo(4), Plan(data=16, recompute="selective"))
    assert round(100 * taken.recomputation / taken.compute) == 4


@pytest.mark.slow
def test_what_the_lab_quotes_of_expert_parallelism() -> None:
    def slower(model: Model, cluster: Cluster, e: int) -> float:
        """In percent, the fastest plan with this e than the fastest of all."""
        found = fastest_by_value(model, cluster)["expert", e].seconds
        return 100 * (found / fastest(model, cluster).seconds - 1)

    assert [round(slower(MIXTRAL, leonardo(8), e)) for e in (1, 2, 4)] == [0, 1, 2]
    eight = fastest_by_value(MIXTRAL, leonardo(8))["expert", 8]
    assert (round(eight.seconds), round(eight.time.experts)) == (79, 23)
    assert [round(slower(SIXTEEN_EXPERTS, P4D, e)) for e in (8, 1)] == [0, 13]
    assert fastest(SIXTEEN_EXPERTS, P4D).plan.pipeline == 1
    assert fastest_by_value(SIXTEEN_EXPERTS, P4D)["expert", 1].plan.pipeline > 1


@pytest.mark.slow
def test_a_public_case_asks_for_every_field_of_a_plan() -> None:
    """Whoever leaves a field as it is learns it in the notebook, and not from the grade."""
    found = [fastest_by_value(case.the_model, case.the_cluster) for case in exercises.find("19-plan").public]
    best = [min(one.seconds for one in by_value.values()) for by_value in found]

    def misses(at: tuple[str, object]) -> bool:
        times = (one[at].seconds if at in one else math.inf for one in found)
        return any(time > (1 + NEAR) * least for time, least in zip(times, best, strict=True))

    fixed = [("tensor", 1), ("pipeline", 1), ("context", 1), ("expert", 1), ("micro_batch", 1)]
    fixed += [("sharding", level) for level in range(4)] + [("recompute", how) for how in RECOMPUTATIONS]
    assert [at for at in fixed if not misses(at)] == NOT_NEEDED


def with_choose(text: str) -> str:
    """device_bytes as it should be, with another choose."""
    return solution_of("19-plan").partition("def choose")[0] + text


@pytest.mark.slow
def test_plans_that_are_known_by_heart_pass_in_the_notebook_and_fail_when_graded() -> None:
    source = with_choose(HARD_CODED)
    assert public_verdict("19-plan", source).passed
    assert hidden_verdict("19-plan", source).score == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("right", "wrong", "told"),
    [
        ("divisors(model.n_experts)", "[1]", "Did you try all values of every field"),
        ("divisors(model.global_batch // d)", "[1]", "those with the same micro-batch,"),
        ("range(4)", "[1]", "those with the same level of ZeRO,"),
        ("cluster.memory_bytes", "cluster.memory_gb * 2**30", "A GB has 10^9 bytes"),
    ],
)
def test_what_few_hidden_cases_show_is_found_in_the_notebook(right: str, wrong: str, told: str) -> None:
    """Mistakes of `choose` that pass for many a model and cluster, each in one place of the solution."""
    source = solution_of("19-plan")
    assert source.count(right) == 1
    assert told in public_verdict("19-plan", source.replace(right, wrong)).hint


def test_device_bytes_is_judged_before_choose_is_written() -> None:
    blank = "def choose(model, cluster):\n    raise NotImplementedError('Write your answer here.')\n"
    verdict = public_verdict("19-plan", with_choose(blank))
    assert verdict.score == 0
    assert "choose has not been written yet" in verdict.hint


@pytest.mark.parametrize(
    ("plan", "told"),
    [
        ("None", "a NoneType, and a Plan is asked for"),
        ("Plan(data=16)", "521.5 GB of 64 GB, most of it activations (393.0 GB)"),
        ("Plan(tensor=4, data=2)", "devices: t x p x d x c = 4 x 1 x 2 x 1 = 8"),
        ("Plan(data=16, sharding=3, recompute='full')", "1.26 times the 70.9 s of the fastest that fits"),
    ],
)
def test_the_box_names_the_constraint_with_its_figures(plan: str, told: str) -> None:
    verdict = public_verdict("19-plan", with_choose(f"def choose(model, cluster):\n    return {plan}\n"))
    assert told in " ".join(as_text(verdict).split())


@pytest.mark.slow
def test_a_wrong_number_that_nothing_explains_is_named_by_its_category() -> None:
    source = solution_of("19-plan").replace('"weights": held(2, 3)', '"weights": held(3, 3)')
    told = " ".join(as_text(public_verdict("19-plan", source)).split())
    assert "weights: 24.090 GB, 1.5 times the right number" in told
    assert "wrong weights of device_bytes(model, plans[0])" in told
    assert "plans[0]: d 16; plans[1]: t 4, p 2, d 2, micro-batch 4, ZeRO-1, selective; plans[2]:" in told


@pytest.mark.slow
def test_numbers_of_numpy_and_whole_numbers_are_taken() -> None:
    source = solution_of("19-plan").replace("held(2, 3)", "numpy.float64(held(2, 3))")
    assert public_verdict("19-plan", f"import numpy\n{source}").passed
