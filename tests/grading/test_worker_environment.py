"""What a worker's environment takes over from the instructor's: nothing."""

from __future__ import annotations

from grading.isolation.environment import environment
from labkit.meters.compiled import cache


def test_workers_share_no_compiled_kernels(tmp_path, monkeypatch) -> None:
    """A folder that one student's code can write would decide another's figures."""
    before = environment(tmp_path)
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "compiled"))
    assert environment(tmp_path) == before and cache.VARIABLE not in before
