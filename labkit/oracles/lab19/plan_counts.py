"""Lab 19: which mistake of counting explains what device_bytes returned."""

from __future__ import annotations

from typing import Any

from labkit.exercises.lab19.plan import Planned
from labkit.oracles.hints import Condition, once
from labkit.oracles.lab19.plan_memory import CATEGORIES, RIGHT, Rules, device_bytes
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Rivals

CLOSE = 1e-6


@once
def made(run: CaseRun[Planned], rules: Rules) -> list[dict[str, float]]:
    """By plan what a device holds, as it is counted by these rules."""
    return [device_bytes(run.case.the_model, plan, rules) for plan in run.case.the_plans]


def is_held_right(run: CaseRun[Planned]) -> bool:
    """device_bytes is right for every plan of this case."""
    return all(
        isinstance(got, dict) and got.keys() == right.keys() and all(close(got[name], right[name]) for name in right)
        for got, right in zip(run.got["held"], made(run, RIGHT), strict=True)
    )


def close(a: float, b: float) -> bool:
    return abs(a - b) <= CLOSE * abs(b)


def counts_by(rules: Rules) -> Condition:
    """A hint's condition: where the mistake changes a category, what came back is what the mistake makes of it.

    Other categories may have mistakes of their own.
    """

    def when(run: CaseRun[Planned]) -> Any:
        wrong, right, got = made(run, rules), made(run, RIGHT), run.got["held"]
        told = [
            (name, at) for name in CATEGORIES for at in range(len(right)) if not close(wrong[at][name], right[at][name])
        ]
        if not told:
            return CANNOT_TELL
        categories = {name for name, _ in told}
        return all(close(got[at][name], wrong[at][name]) for at in range(len(right)) for name in categories)

    return when


def miscounted(rules: Rules, text: str) -> Hint:
    return Hint(counts_by(rules), text)


BOTH_OF_ALL_LAYERS = miscounted(
    Rules(layers_kept="of the model", pipeline_cuts_layers=False),
    "p was not used for the layers: a stage has n_layers / p of them, both weights and activations.",
)
"""Before its rivals: each half of this mistake explains its own categories."""
MEMORY_HINTS = Rivals(
    (
        miscounted(
            Rules(context_shards=False),
            "What ZeRO shards is cut among d only. The ranks of a context group hold the same weights as well, so a "
            "part is shared by all d x c replicas.",
        ),
        miscounted(
            Rules(data_shards=False),
            "What ZeRO shards is cut among c only: the replicas of the weights are the d x c ranks.",
        ),
        miscounted(
            Rules(context_cuts_weights=True),
            "The weights were divided by c. Context parallelism cuts the text; every rank of its group has all weights "
            "of its stage, unless ZeRO shards them.",
        ),
        miscounted(
            Rules(expert_replicas="as the others"),
            "The experts' part under ZeRO is too small. Only d x c / e ranks hold the same experts, so they are cut "
            "into so few parts, while all other weights are cut among d x c.",
        ),
        miscounted(
            Rules(experts_counted=False),
            "expert_params are those of one expert in one layer. A layer has n_experts of them.",
        ),
        miscounted(
            Rules(experts_cut=False),
            "Every device was given all experts of its layers. With expert parallelism it has n_experts / e of them.",
        ),
        miscounted(
            Rules(experts_cut=False, expert_replicas="as the others"),
            "e was not used. A device has n_experts / e of a layer's experts, and d x c / e ranks hold the same ones.",
        ),
        miscounted(
            Rules(sharded_from=(2, 2, 1)),
            "The weights were sharded from ZeRO-2 on. ZeRO-2 shards the optimizer state and the gradients; weights "
            "come with ZeRO-3.",
        ),
        miscounted(
            Rules(sharded_from=(3, 1, 1)),
            "The gradients were sharded from ZeRO-1 on. ZeRO-1 shards only the optimizer state.",
        ),
        miscounted(
            Rules(sharded_from=(1, 2, 3)),
            "The levels of ZeRO are in the opposite order: first the optimizer state, which is the largest, then the "
            "gradients, and the weights last.",
        ),
        miscounted(
            Rules(sharded_from=(1, 1, 1)),
            "Every level from 1 on shards everything. ZeRO-1 shards only the optimizer state, ZeRO-2 the gradients as "
            "well, ZeRO-3 the weights as well.",
        ),
        miscounted(
            Rules(sharded_from=(4, 3, 2)),
            "Every level of ZeRO came one too late: 1 shards the optimizer state, 2 the gradients as well, 3 the "
            "weights as well.",
        ),
        miscounted(
            Rules(levels_add_up=False),
            "Each level of ZeRO shards one thing here. A level keeps what those below it shard: with 3, everything is "
            "sharded.",
        ),
        miscounted(
            Rules(optimizer_bytes=8),
            "The optimizer has 8 bytes a parameter. In mixed precision it also has a float32 copy of the weights: "
            "4 + 4 + 4 = 12.",
        ),
        miscounted(
            Rules(optimizer_bytes=16),
            "The optimizer has 16 bytes a parameter. Its state takes 12: with 2 of weight and 2 of gradient it is 16.",
        ),
        miscounted(
            Rules(tensor_cuts_embedding=False),
            "The embedding was not divided by t. Tensor parallelism cuts every matrix of a stage.",
        ),
        miscounted(
            Rules(output_embedding="never"),
            "With p = 1 the only stage is first and last. It has the output matrix as well, as large as the embedding.",
        ),
        miscounted(
            Rules(output_embedding="always"),
            "The first stage was given the output matrix in every plan. That is in the last stage; the first one has "
            "both only if p = 1.",
        ),
        miscounted(
            Rules(output_embedding="a share"),
            "The two embeddings were spread over the stages. The first stage has all of the input embedding, and the "
            "last one all of the output matrix.",
        ),
        miscounted(
            Rules(input_embedding=False, output_embedding="with one stage"),
            "One embedding is missing: the first stage has it beside its layers.",
        ),
        miscounted(
            Rules(input_embedding=False, output_embedding="never"),
            "The embeddings are missing: the first stage has one, and with p = 1 the output matrix too.",
        ),
        miscounted(
            Rules(pipeline_cuts_layers=False),
            "Every device was given the weights of all layers. A stage has n_layers / p of them.",
        ),
        miscounted(
            Rules(in_flight="one"),
            "The activations of one micro-batch were counted. When the first stage runs its first backward pass, it "
            "has min(m, p) micro-batches in flight, with m micro-batches in a step.",
        ),
        miscounted(
            Rules(in_flight="p"),
            "The first stage was given p micro-batches in every plan. A step may have fewer: m = global_batch / (d x "
            "micro_batch), and min(m, p) are in flight.",
        ),
        miscounted(
            Rules(in_flight="m"),
            "All m micro-batches of the step were counted as in flight, as under GPipe. Under 1F1B the first stage has "
            "at most p of them.",
        ),
        miscounted(
            Rules(layers_kept="of the model"),
            "The activations of all layers were counted. A stage runs n_layers / p of them.",
        ),
        miscounted(
            Rules(tensor_cuts_activations=False),
            "The activations were not divided by t. With sequence parallelism the ranks of a tensor group share all "
            "of them.",
        ),
        miscounted(
            Rules(context_cuts_activations=False),
            "The activations were not divided by c. A rank has 1 / c of the tokens of each text.",
        ),
        miscounted(
            Rules(data_cuts_activations=True),
            "The activations were divided by d. micro_batch counts the sequences of one replica, so d does not "
            "appear in its activations.",
        ),
        miscounted(
            Rules(sequences="one"),
            "The activations do not depend on micro_batch. Each of its sequences has seq_len tokens.",
        ),
        miscounted(
            Rules(sequences="of the replica"),
            "The activations of all sequences of a replica were counted. A micro-batch has micro_batch of them.",
        ),
        miscounted(
            Rules(working_layer="of all layers"),
            "With full recomputation, what a layer keeps while it runs again was counted for all layers of the stage. "
            "They run again one after the other.",
        ),
        miscounted(
            Rules(working_layer="with its core"),
            'The layer that runs again was counted as under "none", scores of the attention core included. Count what '
            'it keeps under "selective".',
        ),
        miscounted(
            Rules(working_layer="without its input"),
            "The input of the layer that runs again was taken off. Count all that it keeps, beside the inputs.",
        ),
        miscounted(
            Rules(working_layer="never"),
            "With full recomputation one layer's activations are missing. While a layer runs again, all that it keeps "
            'under "selective" is alive, for one micro-batch.',
        ),
        miscounted(
            Rules(working_layer="of all"),
            "With full recomputation, what one layer keeps while it runs again was counted for every micro-batch in "
            "flight. It runs again for one micro-batch at a time.",
        ),
        miscounted(
            Rules(text_counts=False),
            "The activations do not depend on seq_len: kept_bytes is what one layer keeps of one token.",
        ),
    )
)
