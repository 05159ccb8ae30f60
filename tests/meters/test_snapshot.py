"""The page of a CUDA memory snapshot, from one written by hand in PyTorch's format; recording needs a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from labkit.meters.memory import cuda_snapshot, snapshot_html
from labkit.units import in_bytes

MIB = 2**20


def event(action: str, addr: int, size: int, line: int = 0) -> dict:
    own = {"filename": "train.py", "line": line, "name": "step <b>"}
    return {"action": action, "addr": addr, "size": size, "frames": [{**own, "filename": "/x/torch/nn.py"}, own]}


def segment(total_size: int, *blocks: tuple[str, int]) -> dict:
    """blocks: state and bytes asked for, each rounded up by 1 MiB."""
    rounded = [{"state": state, "requested_size": size, "size": size + MIB} for state, size in blocks]
    allocated_size = sum(block["size"] for block in rounded if block["state"] == "active_allocated")
    return {"total_size": total_size, "allocated_size": allocated_size, "blocks": rounded}


SNAPSHOT = {
    "segments": [
        segment(30 * MIB, ("active_allocated", 8 * MIB), ("inactive", 4 * MIB)),
        segment(10 * MIB, ("active_allocated", 2 * MIB), ("active_awaiting_free", MIB)),
    ],
    "device_traces": [
        [
            event("segment_alloc", 0, 20 * MIB),
            event("alloc", 1, 4 * MIB, 7),
            event("alloc", 2, 8 * MIB, 8),
            event("free_requested", 1, 4 * MIB),
            event("free_completed", 1, 4 * MIB),
            event("alloc", 3, 1 * MIB, 9),
            {"action": "oom", "device_free": 10 * MIB, "size": 90 * MIB, "frames": []},
        ]
    ],
}


def test_the_page_tells_the_peak_and_what_it_was() -> None:
    page = snapshot_html(SNAPSHOT)
    # 2 MiB were there before: 11 are held at the end, and the trace explains 9.
    assert "Peak allocated: <b>14.00 MiB</b> after 3 of 7 events" in page
    assert "Reserved at most: <b>40.00 MiB</b>" in page
    assert "2.00 MiB of the peak had been allocated before" in page
    assert page.index("train.py:8 step &lt;b&gt;") < page.index("train.py:7") and "train.py:9" not in page
    assert "/torch/" not in page and "http" not in page


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_what_to_use(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="needs a GPU; track_memory measures the same code without one"):
        cuda_snapshot(tmp_path / "page.html").__enter__()


@pytest.mark.gpu
def test_a_real_one(tmp_path: Path) -> None:
    with cuda_snapshot(tmp_path / "page.html"):
        kept = torch.ones(3 * MIB // 4, device="cuda")
        del kept
    page = (tmp_path / "page.html").read_text()
    assert "3.00 MiB</td><td><code>" in page and "test_snapshot.py:" in page


@pytest.mark.gpu
def test_a_real_one_that_runs_out_of_memory(tmp_path: Path) -> None:
    # 512 bytes of the allocator's each, of which 4 were asked for.
    older = [torch.ones((), device="cuda") for _ in range(2**12)]
    asked_bytes = torch.cuda.memory_stats()["requested_bytes.all.current"]
    with pytest.raises(torch.OutOfMemoryError), cuda_snapshot(tmp_path / "page.html"):
        torch.empty(2**50, device="cuda")
    page = (tmp_path / "page.html").read_text()
    assert f"Peak allocated: <b>{in_bytes(asked_bytes)}</b> after 0 of" in page and len(older) == 2**12
