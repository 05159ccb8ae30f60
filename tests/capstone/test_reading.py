"""Whose values may be read out of tensors while costs are counted: a `Trainer`'s, and no script's."""

from __future__ import annotations

import pytest
import torch

from labkit.capstone import MACHINES
from labkit.capstone.broken import RuleBroken
from labkit.capstone.cost import Costs


def test_a_script_reads_no_value_and_a_trainer_its_loss() -> None:
    loss = torch.ones(())
    with Costs(MACHINES["basement"], may_read=True) as costs:
        assert (loss + 1).item() == 2
    assert costs.n_bytes > 0
    with pytest.raises(RuleBroken, match="a value is read out of a tensor"), Costs():
        loss.item()
