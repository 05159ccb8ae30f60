"""The benchmark of optimizers: every way steps every model by turns, and bytes are what each optimizer keeps."""

from __future__ import annotations

import math

import pytest
import torch

from benchmarks import optimizers, optimizers_gpu
from benchmarks.__main__ import scripts
from benchmarks._trace import events_of

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


@pytest.mark.slow
def test_the_one_for_a_gpu_runs_dry_on_a_cpu(capsys) -> None:
    told = optimizers_gpu.main(["--dry", "--repeats", "1"])
    assert len(told["rows"]) == len(optimizers.ways()) * len(optimizers_gpu.DRY_MODELS)
    assert all(row["median_ms"] > 0 for row in told["rows"])
    out = capsys.readouterr().out
    assert all(f"{model}:" in out for model in optimizers_gpu.DRY_MODELS)


def test_a_model_that_does_not_fit_on_the_gpu_is_left_out(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    seen = {}
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (16 * 10**9, 16 * 10**9))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "a small GPU")
    monkeypatch.setattr(optimizers_gpu, "measured", lambda models, device, repeats: seen.update(models) or [])
    told = optimizers_gpu.main([])
    assert list(seen) == ["4000 tensors of 64 x 64"] and list(told["left_out"]) == ["GPT, 124 M parameters"]
    assert "GPT, 124 M parameters: left out, because it needs 24 GB and 16 GB are free" in capsys.readouterr().out


def test_the_trace_tells_kernels_from_what_else_there_is() -> None:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as seen:
        torch.ones(3).add_(1)
    categories = [event.get("cat") for event in events_of(seen)]
    assert "cpu_op" in categories and "kernel" not in categories


@pytest.mark.gpu
def test_a_step_on_a_gpu_has_kernels_and_frees_what_is_temporary() -> None:
    rows = {row["optimizer"]: row for row in optimizers.measured(TINY, torch.device("cuda"), repeats=2)}
    assert 1 <= rows[optimizers.BASELINE]["kernels"] <= 4
    assert rows["AdamW, ours"]["kernels"] > rows["AdamW on lists, ours"]["kernels"] > 4
    assert rows[optimizers.BASELINE]["temporary_bytes"] == 0
    assert rows["AdamW, ours"]["state_bytes"] == 8
