"""Every tier for a grader who is not root: they work, and the same answers get the same marks."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from grading.isolation.tiers import KERNEL, TIERS
from tests.lanes import require, require_tier

ROOT = Path(__file__).resolve().parents[2]
USER = 1234
TRY = """
import json
import sys
from grading.worker.protocol.steps import RunCode, ServeExercise
from grading.isolation.probe import try_tier
from grading.isolation.tiers import tier_named
from grading.supervisor import Sandbox, Job
from grading.supervisor.run import close_sandboxes, run
from tests.grading.cells import run_cell

RMS = "import torch\\ndef rms(x, dim):\\n    return x.double().pow(2).mean(dim).sqrt().to(x.dtype)"
SUM = open("tests/right/02-blocked-sum/float64_accumulator.py").read()
MERGE = open("tests/right/02-merge-smallest/two_queues.py").read()
RANKS = open("tests/right/14-naive/the_last_rank_first.py").read()
STEPS = [RunCode("c", "import torch")]
for name, source in (("00-warm-up", RMS), ("02-blocked-sum", SUM), ("02-merge-smallest", MERGE), ("14-naive", RANKS)):
    STEPS.append(RunCode(name, source))
    STEPS.append(ServeExercise(f"{name}-check", name))
told = {}
for tier in map(tier_named, sys.argv[1:]):
    finding = try_tier(tier)
    told[tier.name] = finding.reason
    if finding.works:
        result = run(Job("02", "ada", "1", tuple(STEPS), (), (), b"key"), tier)
        told[tier.name] = {name: found["hidden"]["outcome"] for name, found in result["exercises"].items()}
        with Sandbox(tier, preload=("torch", "grading.worker.job")) as server:
            write = "open('x', 'wb').write(bytes(2**26)); print(1)"
            told[tier.name]["room"] = run_cell(server, write, ("loopback", "files"))
close_sandboxes()
print(json.dumps(told))
"""
PASSED = {"00-warm-up": "passed", "02-blocked-sum": "passed", "02-merge-smallest": "passed", "14-naive": "passed"}
PASSED["room"] = 1


@pytest.mark.parametrize(
    "tiers",
    [
        pytest.param([KERNEL.name], marks=pytest.mark.slow, id=KERNEL.name),
        pytest.param([tier for tier in TIERS if tier != KERNEL.name], marks=pytest.mark.full("attacks"), id="others"),
    ],
)
def test_every_tier_works_without_root(tiers: list[str], tmp_path: Path) -> None:
    for tier in tiers:
        require_tier(tier)
    command = [sys.executable, "-c", TRY, *tiers]
    if os.geteuid() == 0:
        command = as_user(command, tmp_path)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1]) == dict.fromkeys(tiers, PASSED)


def as_user(command: list[str], aside: Path) -> list[str]:
    """The command as another user, in a mount namespace in which folders that only root may enter are opened for it."""
    require("unshare", "this test makes a mount namespace", "sudo apt install util-linux")
    lines = ["set -e"]
    opened: dict[str, list[str]] = {}
    for path in dict.fromkeys((str(ROOT), os.path.realpath(sys.base_prefix))):
        if closed := _closed_folder(Path(path)):
            opened.setdefault(closed, []).append(path)
    for n, (closed, paths) in enumerate(opened.items()):
        kept = [shlex.quote(f"{aside}/{n}-{index}") for index, _ in enumerate(paths)]
        for path, place in zip(paths, kept, strict=True):
            lines += [f"mkdir -p {place}", f"mount --bind {shlex.quote(path)} {place}"]
        lines.append(f"mount -t tmpfs -o mode=755 none {shlex.quote(closed)}")
        for path, place in zip(paths, kept, strict=True):
            lines += [f"mkdir -p {shlex.quote(path)}", f"mount --bind {place} {shlex.quote(path)}"]
    environment = ["env", "-i", f"PATH={os.environ['PATH']}", "HOME=/tmp", "OMP_NUM_THREADS=1"]
    run = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", *environment, *command]
    lines.append("exec " + shlex.join(run))
    return ["unshare", "--mount", "bash", "-c", "\n".join(lines)]


def _closed_folder(path: Path) -> str | None:
    """The topmost folder above `path` that others may not enter."""
    closed = [str(folder) for folder in reversed(path.parents) if not folder.stat().st_mode & 0o001]
    return closed[0] if closed else None
