"""Every tier for a grader who is not root: they work, the same answers get the same marks, and walls hold."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from grading.isolation.tiers import KERNEL, TIERS
from grading.verify.attacks import Attack
from tests.grading.test_attacks import ATTACKS, ROWS_OF_THE_BOX, one_of_each_row, runs_something
from tests.lanes import missing, require, require_tier

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


ON_OTHERS = ("17_", "23_", "44_inputs", "44_memory", "44_names", "44_other")
ON_THE_SAME_USER = ("x_namespaces", "x_note_in_", "x_output", "x_priv", "x_proc", "x_signals")
LEANS_ON_USERS = (*ON_OTHERS, *ON_THE_SAME_USER)
"""Attacks on other processes, of the same user and of none: as root each job is a user of its own, and here none is."""
SOON_S = 45.0
"""No attack that waits for a longer limit."""


def attacks_without_root() -> list[Attack]:
    """One of each row that tries a wall, and all that a user of its own would hold as well."""
    soon = [attack for attack in ATTACKS if runs_something(attack) and attack.within_s <= SOON_S]
    sample = one_of_each_row([attack for attack in soon if attack.row in ROWS_OF_THE_BOX])
    return [attack for attack in soon if attack in sample or attack.name.startswith(LEANS_ON_USERS)]


def test_attacks_without_root_are_of_every_row_of_the_box() -> None:
    chosen = attacks_without_root()
    assert {attack.row for attack in chosen} == {*ROWS_OF_THE_BOX}
    for lead in LEANS_ON_USERS:
        assert [attack for attack in chosen if attack.name.startswith(lead)], lead


@pytest.mark.full("attacks")
@pytest.mark.timeout(900)
def test_no_attack_gets_through_without_root(tmp_path: Path) -> None:
    """On the kernel tier, around which no second wall stands: all jobs and ranks are the grader's own user there."""
    if os.geteuid():
        pytest.skip("test_attacks.py tries them as this user")
    require_tier(KERNEL.name)
    # Not in /tmp: a job has one of its own, in which it may make a home like the grader's and write there.
    command = ["env", "TMPDIR=/var/tmp", sys.executable, "-m", "grading", "verify", "--workers", "2"]
    only = [word for attack in attacks_without_root() for word in ("--only", attack.name)]
    command = as_user([*command, "--isolation", KERNEL.name, *only], tmp_path)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if not_run := next((line for line in done.stdout.splitlines() if line.startswith("not run: kernel: ")), None):
        missing("isolation by kernel without root", not_run, "python -m grading doctor, as another user")
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-2000:]}"


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
