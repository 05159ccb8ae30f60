"""The events of a run of PyTorch's profiler, as they stand in the trace that it writes. It records nothing itself."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import torch


def events_of(profiler: torch.profiler.profile) -> list[dict[str, Any]]:
    """Each with its category under "cat": what `profiler.events()` gives does not tell a kernel from a copy."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(file))
        return json.loads(file.read_text(encoding="utf-8"))["traceEvents"]
