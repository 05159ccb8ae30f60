"""Lab 16: what is kept and sent, counted on the simulated network, and what the usual mistakes look like.

Students have this file, so the counts of the public cases are stored, and neither the programs nor the formulas
stand here.
"""

from __future__ import annotations

from typing import Any

from labkit.exercises.lab16.volume import VOLUME as EXERCISE
from labkit.exercises.lab16.volume import Volume
from labkit.oracles.calls import as_call
from labkit.oracles.lab16.deepspeed import batch_fault, config_fits, has_fault, precision_fault
from labkit.oracles.lab16.volume_mistakes import (
    a_rank_s_share_crosses,
    all_ranks_cross,
    as_if,
    between,
    close,
    either,
    in_and_between,
    is_wrong,
    less_own,
    mesh_as_if,
    mesh_is_turned_round,
    multiplied,
    n_of_states,
    own_part_sent,
    passed_often,
    weights,
)
from labkit.spec import CaseRun, Hint, Observation, Oracle, Tolerance

COUNTED = (
    (64, 1, 120_000_000_000, 29_531_250_000, 29_531_250_000),
    (1, 64, 31_406_250_000, 29_531_250_000, 29_531_250_000),
    (1, 64, 16_640_625_000, 29_531_250_000, 29_531_250_000),
    (1, 64, 1_875_000_000, 44_296_875_000, 44_296_875_000),
    (8, 8, 15_000_000_000, 42_656_250_000, 26_250_000_000),
    (6, 1, 19_200_000, 4_000_000, 4_000_000),
    (1, 6, 7_200_000, 4_000_000, 4_000_000),
    (1, 6, 5_200_000, 10_000_000, 10_000_000),
    (1, 6, 3_200_000, 24_000_000, 24_000_000),
    (2, 3, 6_400_000, 20_000_000, 2_400_000),
    (4, 1, 384_000, 72_000, 0),
    (1, 4, 168_000, 72_000, 0),
    (1, 4, 132_000, 108_000, 0),
    (1, 4, 96_000, 216_000, 0),
    (1, 4, 96_000, 216_000, 0),
    (1, 1, 64_000, 0, 0),
)
"""The mesh; bytes kept by a rank, sent by a rank in a step, leaving a node in a step: a row for each public case."""


def expect(run: CaseRun[Volume]) -> dict[str, Any]:
    """What was counted in a public case. What came back stands for the configuration, which a property judges."""
    replicas, shards, *counted = map(float, COUNTED[EXERCISE.public.index(run.case)])
    numbers = dict(zip(("kept", "sent", "crossed"), counted))
    return {"mesh": [replicas, shards], **numbers, "config": run.got["config"]}


def in_words(run: Observation) -> str:
    """The call that a case stands for."""
    case = run.case
    call = as_call("bytes_sent", case.method, case.n_params, case.n_nodes, case.ranks_per_node, case.n_micro)
    return f"{call}, and mesh_shape, bytes_kept and deepspeed_config for the same run"


VOLUME = Oracle(
    id="16-volume",
    call=in_words,
    places={
        "mesh": "mesh_shape(...)",
        "mesh.0": "first number of mesh_shape(...)",
        "mesh.1": "second number of mesh_shape(...)",
        "kept": "bytes_kept(...)",
        "sent": "first number of bytes_sent(...)",
        "crossed": "second number of bytes_sent(...)",
    },
    expect=expect,
    tolerance=Tolerance(rtol=1e-9),
    judge=(config_fits,),
    axis="numbers of nodes, of ranks in a node, and of micro-batches",
    unusable={
        "cannot unpack": "bytes_sent returns two numbers: what a rank sends in a step, and what leaves a node.",
    },
    diagnose=(
        Hint(
            lambda run: not isinstance(run.got["mesh"], list) or len(run.got["mesh"]) != 2,
            "mesh_shape returns two numbers for every method: how many replicas there are, and over how many ranks "
            "each of them is cut. Their product is the number of ranks.",
        ),
        Hint(
            mesh_as_if("ddp", wrong=lambda case: (1, case.n_ranks)),
            "DDP cuts nothing: every rank is a replica.",
        ),
        Hint(
            mesh_as_if("zero1", "zero2", wrong=lambda case: (case.n_ranks, 1)),
            "ZeRO-1 and ZeRO-2 cut as well, over all ranks: the mesh is that of ZeRO-3. What they keep whole shows in "
            "bytes_kept.",
        ),
        Hint(
            mesh_as_if("hybrid", wrong=lambda case: (1, case.n_ranks)),
            "Hybrid sharding has a replica in each node: the mesh has as many rows as there are nodes.",
        ),
        Hint(
            mesh_is_turned_round,
            "PyTorch reads a mesh of two dimensions as (replicas, shards): it cuts along the second one.",
        ),
        Hint(
            either(
                as_if("sent", "ddp", wrong=weights),
                as_if("sent", "ddp", wrong=lambda case: passed_often(case, 1)),
            ),
            "DDP's all-reduce is a reduce-scatter and an all-gather. A rank sends (n-1)/n of S bytes in each of the "
            "two, where S is the gradients' 2 bytes a parameter: not S in all.",
        ),
        Hint(
            own_part_sent,
            "A rank never sends its own part of the result to itself: each pass around the ring costs (n-1)/n of S.",
        ),
        Hint(
            multiplied(lambda case: 2.0),
            "Weights and gradients travel in 16 bits, 2 bytes for each parameter. Only the optimizer works in 32 bits.",
        ),
        Hint(
            as_if("sent", "zero1", wrong=lambda case: passed_often(case, 3)),
            "ZeRO-1 needs no all-reduce: a rank needs the sum of its own part of the gradients only, which is a "
            "reduce-scatter. With the all-gather of the new weights that makes two passes, as many as DDP has.",
        ),
        Hint(
            as_if("sent", "zero3", wrong=lambda case: passed_often(case, 2 * case.n_micro)),
            "ZeRO-3 frees the weights after the forward pass, so they are gathered again for the backward pass: two "
            "all-gathers and a reduce-scatter for each micro-batch.",
        ),
        Hint(
            either(
                as_if("sent", "zero3", "hybrid", wrong=lambda case: passed_often(case, 3)),
                as_if("sent", "zero2", wrong=lambda case: passed_often(case, 2)),
            ),
            "A step of several micro-batches: ZeRO-3 gathers, gathers again and reduces in each of them. ZeRO-2 keeps "
            "no whole gradient, so it reduces in each of them, and gathers the new weights once.",
        ),
        Hint(
            either(
                as_if("sent", "zero3", wrong=lambda case: passed_often(case, case.n_micro + 2)),
                as_if("sent", "hybrid", wrong=lambda case: in_and_between(case, case.n_micro + 2)),
            ),
            "The weights are freed after each use, so they are gathered twice in every micro-batch, and not twice a "
            "step.",
        ),
        Hint(
            either(
                as_if("sent", "zero3", wrong=lambda case: passed_often(case, 2 * case.n_micro + 1)),
                as_if("sent", "hybrid", wrong=lambda case: in_and_between(case, 2 * case.n_micro + 1)),
            ),
            "A rank keeps no whole gradient to add up in: it reduce-scatters in every micro-batch, and not once a "
            "step.",
        ),
        Hint(
            as_if("sent", "hybrid", wrong=lambda case: in_and_between(case, 3 * case.n_micro, case.n_micro)),
            "Between the nodes a rank averages its shard once a step, and not in every micro-batch: the shard of the "
            "gradient is added up at home until then.",
        ),
        Hint(
            as_if("sent", "ddp", "zero1", wrong=lambda case: passed_often(case, 2 * case.n_micro)),
            "DDP and ZeRO-1 keep a whole gradient and add up in it. They send once a step, however many micro-batches "
            "there are.",
        ),
        Hint(
            as_if("sent", "ddp", "zero1", wrong=lambda case: passed_often(case, case.n_micro + 1)),
            "DDP and ZeRO-1 keep a whole gradient and add up in it: they reduce once a step, after the last "
            "micro-batch.",
        ),
        Hint(
            as_if("sent", "zero2", wrong=lambda case: passed_often(case, 2 * case.n_micro)),
            "ZeRO-2 reduces in each micro-batch, but the weights change once a step: they are gathered once.",
        ),
        Hint(
            as_if(
                "sent",
                "hybrid",
                wrong=lambda case: case.n_micro * 3 * less_own(case.ranks_per_node) * weights(case),
            ),
            "In hybrid sharding the nodes hold replicas of one another. After the reduce-scatter within a node, each "
            "shard of the gradient is averaged over the nodes: an all-reduce among n_nodes ranks.",
        ),
        Hint(
            as_if(
                "sent",
                "hybrid",
                wrong=lambda case: (
                    case.n_micro * 3 * less_own(case.ranks_per_node) * weights(case)
                    + 2 * less_own(case.n_nodes) * weights(case)
                ),
            ),
            "Between the nodes a rank averages its shard only, and that is 1/ranks_per_node of the gradient.",
        ),
        Hint(
            either(
                as_if("sent", "hybrid", wrong=lambda case: passed_often(case, 3 * case.n_micro)),
                as_if("sent", "hybrid", wrong=lambda case: passed_often(case, 3 * case.n_micro) + between(case)),
            ),
            "Hybrid sharding cuts the model over the ranks of one node: the three passes are among ranks_per_node "
            "ranks, and only the gradient's shard goes from node to node.",
        ),
        Hint(
            as_if("kept", "hybrid", wrong=lambda case: 16 * case.n_params / case.n_nodes),
            "The model is cut over the ranks of a node, not over the nodes: the nodes hold replicas of one another.",
        ),
        Hint(
            as_if("kept", "hybrid", wrong=lambda case: 16 * case.n_params / case.n_ranks),
            "Hybrid sharding cuts over the ranks of one node, and every node holds the whole model once.",
        ),
        Hint(
            lambda run: close(run.got["kept"], run.expected["kept"] - 4 * run.case.n_params / n_of_states(run.case)),
            "The optimizer keeps three numbers of 4 bytes for each parameter: two moments, and the master weight.",
        ),
        Hint(
            lambda run: (
                close(run.got["kept"], run.expected["kept"] / 2**30)
                or close(run.got["kept"], run.expected["kept"] / 1e9)
            ),
            "Return bytes, not GB or GiB.",
        ),
        Hint(
            either(
                as_if("kept", "zero1", wrong=lambda case: 2 * case.n_params + 14 * case.n_params / case.n_ranks),
                as_if("kept", "zero1", wrong=lambda case: 16 * case.n_params / case.n_ranks),
                as_if("kept", "zero2", wrong=lambda case: 16 * case.n_params / case.n_ranks),
                as_if("kept", "zero2", wrong=lambda case: 4 * case.n_params + 12 * case.n_params / case.n_ranks),
                as_if("kept", "zero3", wrong=lambda case: 2 * case.n_params + 14 * case.n_params / case.n_ranks),
            ),
            "The stages differ in what is cut: 1 the optimizer's states with the master weights, 2 the gradients as "
            "well, 3 the weights as well.",
        ),
        Hint(
            lambda run: run.case.n_nodes > 1 and is_wrong(run, "crossed") and all_ranks_cross(run),
            "One ring through all ranks leaves a node over one link, however many ranks the node has.",
        ),
        Hint(
            lambda run: run.case.method == "hybrid" and is_wrong(run, "crossed") and a_rank_s_share_crosses(run),
            "The shards of all ranks of a node are averaged with those of the other nodes, each in a ring of its own: "
            "what leaves a node is the sum of what its ranks send there.",
        ),
        Hint(
            lambda run: run.case.n_nodes == 1 and run.got["crossed"] != 0,
            "With one node nothing leaves a node: the second number is 0.",
        ),
        Hint(
            has_fault(batch_fault),
            "DeepSpeed insists on train_batch_size = train_micro_batch_size_per_gpu x gradient_accumulation_steps x "
            "number of ranks, on all nodes.",
        ),
        Hint(
            has_fault(precision_fault),
            '2 bytes for each weight and gradient means {"bf16": {"enabled": True}}; without it DeepSpeed computes in '
            "32 bits.",
        ),
    ),
)
