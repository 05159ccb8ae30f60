"""The page of a CUDA memory snapshot, from one written by hand in PyTorch's format; recording needs a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from labkit.meters.memory import cuda_snapshot, snapshot_html

MIB = 2**20


def event(action: str, addr: int, size: int, line: int = 0) -> dict:
    own = {"filename": "train.py", "line": line, "name": "step <b>"}
    return {"action": action, "addr": addr, "size": size, "frames": [{**own, "filename": "/x/torch/nn.py"}, own]}


SNAPSHOT = {
    "segments": [{"total_size": 40 * MIB, "allocated_size": 11 * MIB}],
    "device_traces": [
        [
            event("segment_alloc", 0, 20 * MIB),
            event("alloc", 1, 4 * MIB, 7),
            event("alloc", 2, 8 * MIB, 8),
            event("free_requested", 1, 4 * MIB),
            event("free_completed", 1, 4 * MIB),
            event("alloc", 3, 1 * MIB, 9),
        ]
    ],
}


def test_the_page_tells_the_peak_and_what_it_was() -> None:
    page = snapshot_html(SNAPSHOT)
    # 2 MiB were there before: 11 are held at the end, and the trace explains 9.
    assert "Peak allocated: <b>14.00 MiB</b> after 3 of 6 events" in page
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
