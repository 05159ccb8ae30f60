"""The probe that tries a tier, its teeth, and which tier is taken; what fails to start leaves nothing."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

import pytest

from grading.errors import UserError
from grading.isolation import Tier, bwrap, probe, select_tier, selection
from grading.isolation.plan import layout
from grading.isolation.probe import TierFinding, _try, try_tier
from grading.isolation.sandbox import Sandbox
from grading.isolation.tiers import BWRAP, KERNEL, LAYERED, NONE, TIERS, tier_named
from grading.isolation.worker_tree import shared_worker_tree
from grading.worker.confine.plan import GRANTS, Place
from grading.worker.procfs import children
from labkit import exercises
from tests.grading.runs import wait_until
from tests.lanes import require_tier


def test_the_probe_has_teeth() -> None:
    """The same tries succeed where nothing confines them."""
    with Sandbox(NONE, preload=()) as server:
        breaches = _try(server)
    assert {"read a file outside", "reach the network", "signal the grader", "reach another program's socket"} <= set(
        breaches
    )


def test_without_its_inner_wall_the_layered_tier_does_not_work(monkeypatch) -> None:
    """What makes the namespaces of a job is taken from its worker; the sandbox around it stands as before."""
    require_tier("layered")
    probe._working.cache_clear()
    with monkeypatch.context() as lacking:
        lacking.setattr(bwrap, "_ANYBODY", ())
        found = try_tier(LAYERED)
    reason = r"it could not be set up: .*PermissionError: \[Errno 1\] clone: Operation not permitted"
    assert not found.works and re.fullmatch(reason, found.reason) and "bubblewrap" in found.fix
    assert try_tier(LAYERED).works


def test_what_is_in_a_tiers_way_may_pass(monkeypatch) -> None:
    tried = []

    def start(tier: Tier, *_tree: object, **_options: object) -> Sandbox:
        tried.append(tier)
        if len(tried) == 1:
            raise BlockingIOError("no more processes for now")
        return Sandbox(tier, preload=())

    require_tier("kernel")
    probe._working.cache_clear()
    monkeypatch.setattr("grading.isolation.sandbox.Sandbox", start)
    first = try_tier(KERNEL)
    assert not first.works and first.reason == "it could not be set up: no more processes for now" and first.fix
    assert [try_tier(KERNEL).works for _ in range(3)] == [True, True, True]
    assert len(tried) == 2


def working_in(folder: Path) -> list[str]:
    """The programs whose working directory lies there, or lay there before it was removed."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.readlink(process / "cwd").startswith(str(folder)):
                found.append((process / "cmdline").read_text()[:40])
    return found


@pytest.mark.slow
@pytest.mark.parametrize("tier", [NONE.name, *TIERS])
@pytest.mark.parametrize("error", [PermissionError, KeyboardInterrupt])
def test_what_fails_to_start_leaves_nothing(monkeypatch, tmp_path: Path, tier: str, error: type) -> None:
    if tier != NONE.name:
        require_tier(tier)

    def fail(*_args: object) -> None:
        raise error("not now")

    def left() -> tuple[object, ...]:
        return os.listdir(tmp_path), len(os.listdir("/proc/self/fd")), sorted(children(os.getpid()))

    tree = shared_worker_tree()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = left()
    for step in ("grading.isolation.sandbox.plan_of", "grading.isolation.forking.ForkingProcess.expect"):
        with monkeypatch.context() as failing, pytest.raises(error):
            failing.setattr(step, fail)
            Sandbox(tier_named(tier), tree, preload=())
        assert left() == before
        # Nobody waits for the end of what was a child of a child.
        wait_until(lambda: not working_in(tmp_path), within_s=10.0)


def test_exercises_ask_for_nothing_but_what_can_be_granted() -> None:
    asked = {name: set(exercise.run.needs) for name, exercise in exercises.everything().items()}
    assert asked["15-launch"] and all(needs <= set(GRANTS) for needs in asked.values())


def test_auto_takes_the_first_that_works(monkeypatch) -> None:
    monkeypatch.setattr(selection, "try_tier", lambda tier: TierFinding(tier, tier is KERNEL, "why", "fix"))
    assert select_tier("auto") is KERNEL
    monkeypatch.setattr(selection, "try_tier", lambda tier: TierFinding(tier, tier is not LAYERED, "why", "fix"))
    assert select_tier("auto") is BWRAP
    monkeypatch.setattr(selection, "try_tier", lambda tier: TierFinding(tier, True))
    assert select_tier("auto") is LAYERED


def test_where_nothing_works_grading_is_refused(monkeypatch) -> None:
    def fails(tier: Tier) -> TierFinding:
        return TierFinding(tier, False, f"no {tier.name}", f"get {tier.name}")

    monkeypatch.setattr(selection, "try_tier", fails)
    for asked in ("auto", *TIERS):
        with pytest.raises(UserError, match=r"cannot be isolated.*no (layered|bwrap|kernel).*get .*--isolation none"):
            select_tier(asked)
    assert select_tier("none") is NONE
    choices = "auto, layered, bwrap, kernel, none"
    with pytest.raises(UserError, match=f'there is no isolation "docker": choose one of: {choices}'):
        select_tier("docker")


def test_what_lies_inside_of_what_is_shown_is_covered(tmp_path: Path) -> None:
    for name in ("lib/python/site/torch", "lib/repo/solutions", "lib/repo/venv", "elsewhere"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "bin").symlink_to("lib")
    at = str(tmp_path)
    shown = [f"{at}/lib", f"{at}/lib/python/site", f"{at}/lib/repo/venv", f"{at}/bin", f"{at}/not/there"]
    assert layout(shown, [f"{at}/lib/repo", f"{at}/elsewhere"]) == (
        Place("link", f"{at}/bin"),
        Place("bind", f"{at}/lib"),
        Place("cover", f"{at}/lib/repo"),
        Place("bind", f"{at}/lib/repo/venv"),
    )
