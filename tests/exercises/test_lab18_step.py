"""18-pipeline-step: its orders are 1F1B's and GPipe's, what is alive is counted, and the notebook's training is one."""

from __future__ import annotations

import pytest
import torch

from grading.hidden.lab18.pipeline_step import gpipe, one_f_one_b
from labkit.exercises.lab18.model import make_stage
from labkit.exercises.lab18.pipeline_step import GPIPE_3_4, ONE_2_4, ONE_3_4, ONE_3_5, ONE_3_24, Steps
from labkit.material.lab18 import train_on_stages
from labkit.torch_oracles import schedule_ops
from tests.exercises.harness import answers_in, solution_of

pytestmark = pytest.mark.lab("18")


@pytest.mark.parametrize("orders", [ONE_3_4, ONE_3_5, ONE_2_4, ONE_3_24], ids=["3x4", "3x5", "2x4", "3x24"])
def test_the_public_orders_are_pytorchs_1f1b(orders: tuple[str, ...]) -> None:
    n_micro = len(orders[0].split()) // 2
    assert orders == one_f_one_b(len(orders), n_micro)
    ops = schedule_ops("1F1B", len(orders), n_micro)
    assert list(orders) == [" ".join(f"{op.kind}{op.microbatch}" for op in rank) for rank in ops]


def test_how_many_micro_batches_an_order_keeps() -> None:
    assert gpipe(3, 4) == GPIPE_3_4
    sizes = ((1, 1),) * 5
    assert [Steps("1F1B", ONE_3_5, sizes).most_alive(rank) for rank in range(3)] == [3, 2, 1]
    assert Steps("GPipe", GPIPE_3_4, sizes).most_alive(2) == 4


def test_what_is_alive_is_what_autograd_keeps() -> None:
    stage = make_stage((1, 1), 4, 7, seed=0, rank=1)
    ins = [torch.zeros(1, 2, 4, requires_grad=True) for _ in range(3)]
    outs = [stage(x) for x in ins]
    assert stage.alive.now == 3
    outs[1].sum().backward()
    assert stage.alive.now == 2, "the output is still there, and its graph is not"
    outs[0].sum().backward(retain_graph=True)
    assert stage.alive.now == 2
    outs.clear()
    assert (stage.alive.now, stage.alive.most) == (0, 3)
    with torch.no_grad():
        stage(ins[0])
    assert stage.alive.most == 3, "without a graph nothing is kept"


def test_the_notebooks_three_stages_train_as_one_process() -> None:
    pipeline_step = answers_in("18-pipeline-step", solution_of("18-pipeline-step"))["pipeline_step"]
    order = [(kind, k) for kind in "FB" for k in range(8)]
    alone = train_on_stages(pipeline_step, [order], n_steps=3)
    three = train_on_stages(pipeline_step, [order] * 3, n_steps=3, backend="simulated")
    assert three.losses == pytest.approx(alone.losses, rel=1e-5) and three.losses[-1] < three.losses[0]
    assert three.apart == 0.0 and three.sent[0] == three.sent[2] < three.sent[1]
