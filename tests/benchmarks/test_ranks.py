"""The benchmark of ranks: its traffic is the formulas', its ways take turns, and what needs GPUs says so."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from benchmarks import ranks


def test_traffic_is_that_of_the_formulas() -> None:
    rows = ranks.traffic()
    assert {(row["algorithm"], row["ranks"]) for row in rows} == {(a, n) for a in ranks.ALL for n in range(2, 17)}
    assert [row for row in rows if row["counted"] != row["formula"]] == []


def test_the_ways_take_turns_and_are_compared_round_by_round() -> None:
    order: list[str] = []
    ways = {ranks.POOL: lambda: order.append("pool"), "other": lambda: order.append("other")}
    found = ranks.alternated(ways, 3)
    assert order == ["pool", "other"] * 3
    assert found[ranks.POOL]["times_pool"] == 1 and found["other"]["times_pool"] > 0
    assert found["other"]["best_s"] <= found["other"]["median_s"]
    assert "times_pool" not in ranks.alternated({"alone": order.clear}, 1)["alone"]


def test_cpu_time_of_other_processes_counts() -> None:
    burn = "import time\nwhile time.process_time() < 0.3: pass"
    found = ranks.alternated({"child": lambda: subprocess.run([sys.executable, "-c", burn], check=True)}, 1)
    assert found["child"]["cpu_s"] >= 0.3


@pytest.mark.parametrize("n_gpus", [0, 1])
def test_one_gpu_is_enough_for_nothing(monkeypatch: pytest.MonkeyPatch, n_gpus: int) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: n_gpus)
    monkeypatch.setattr(ranks.dist, "is_nccl_available", lambda: True)
    wanted = f"a rank of NCCL needs a GPU of its own, and a collective two ranks: this machine has {n_gpus}"
    assert ranks.nccl(1) == {"skipped": wanted}
