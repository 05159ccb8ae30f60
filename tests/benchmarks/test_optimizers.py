"""The benchmark of optimizers: every way steps every model by turns, and bytes are what each optimizer keeps."""

from __future__ import annotations

import math

import pytest
import torch

from benchmarks import optimizers, optimizers_gpu
from benchmarks.__main__ import scripts

TINY = {"tiny": [(64, 64), (64,), (8, 8)]}


def test_one_needs_a_gpu_and_the_other_does_not() -> None:
    assert scripts()["optimizers"] is False and scripts()["optimizers_gpu"] is True


def test_models_are_of_the_size_that_their_names_say() -> None:
    def millions(shapes) -> float:
        return sum(map(math.prod, shapes)) / 1e6

    assert millions(optimizers.CPU_MODELS["GPT, 3.4 M parameters"]) == pytest.approx(3.4, abs=0.05)
    assert millions(optimizers_gpu.MODELS["GPT, 124 M parameters"]) == pytest.approx(124, abs=0.5)


@pytest.mark.slow
def test_each_way_has_a_time_and_its_bytes(capsys) -> None:
    rows = {row["optimizer"]: row for row in optimizers.measured(TINY, torch.device("cpu"), repeats=2)}
    assert rows.keys() == optimizers.ways().keys()
    assert all(0 < row["low_ms"] <= row["median_ms"] <= row["high_ms"] for row in rows.values())
    bytes_of = {name: row["state_bytes"] for name, row in rows.items()}
    assert bytes_of["AdamW, ours"] == bytes_of["AdamW on lists, ours"] == 8
    assert bytes_of["AdamW in bf16 by chance, ours"] == 4
    assert 2.03 < bytes_of["Adam in 8 bits, ours"] < 2.3
    # Matrices have one buffer, the vector two moments.
    n_parameters = sum(map(math.prod, TINY["tiny"]))
    assert bytes_of["Muon and AdamW, ours"] == pytest.approx(4 + (4 * 64) / n_parameters, abs=1e-3)
    assert rows["AdamW, torch, fused"]["temporary_bytes"] == 0
    assert rows["AdamW on lists, ours"]["temporary_bytes"] == 4
    assert "tiny:" in capsys.readouterr().out
