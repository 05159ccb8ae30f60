"""Folders that are to go with a program go when it and all who hold on to them have ended, and not before."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from grading.errors import UserError
from grading.isolation.tiers import ISOLATING
from grading.remains import remove_at_the_end
from tests.grading.runs import wait_until
from tests.lanes import require_tier

HOLDS = """
import os, subprocess, sys
from grading.remains import holding, remove_at_the_end
remove_at_the_end(sys.argv[1])
if sys.argv[2] == "with a child":
    held = holding().fileno()
    subprocess.Popen(["sh", "-c", "read _"], stdin=0, pass_fds=(held,))
if sys.argv[2] == "killed":
    os.kill(os.getpid(), 9)
os._exit(0)
"""
SHELL_KILLED = """
import os, sys
from grading import remains
remains.remove_at_the_end(sys.argv[1])
shell, _ = remains._waiting()
shell.kill()
shell.wait()
remains.remove_at_the_end(sys.argv[1])
"""
KILLED_IN_A_TRIAL = """
import os, sys
from grading.isolation.probe import try_tier
from grading.isolation.sandbox import Sandbox
from grading.isolation.tiers import tier_named
run_trial = Sandbox.run_trial
def killed(self, targets):
    run_trial(self, targets)
    os.kill(os.getpid(), 9)
Sandbox.run_trial = killed
try_tier(tier_named(sys.argv[1]))
"""


@pytest.mark.parametrize("ends", ["by itself", "killed"])
def test_a_folder_goes_with_its_program_however_that_ends(tmp_path: Path, ends: str) -> None:
    folder = tmp_path / "a folder\twith 'blanks'"
    (folder / "within").mkdir(parents=True)
    subprocess.run([sys.executable, "-c", HOLDS, folder, ends], check=ends != "killed", timeout=280)
    wait_until(lambda: not folder.exists())
    assert list(tmp_path.iterdir()) == []


def test_it_stays_while_another_process_holds_on_to_it(tmp_path: Path) -> None:
    folder = tmp_path / "held"
    folder.mkdir()
    with subprocess.Popen([sys.executable, "-c", HOLDS, folder, "with a child"], stdin=subprocess.PIPE) as program:
        assert program.wait(60) == 0
        # As long as it takes for a folder that nobody holds on to.
        other = tmp_path / "other"
        other.mkdir()
        subprocess.run([sys.executable, "-c", HOLDS, other, "by itself"], check=True, timeout=280)
        wait_until(lambda: not other.exists())
        assert folder.is_dir()
        # The child reads to the end of what is its standard input, too.
        program.stdin.close()
        wait_until(lambda: not folder.exists())


@pytest.mark.slow
@pytest.mark.parametrize("tier", [tier.name for tier in ISOLATING])
def test_the_trial_of_a_tier_leaves_nothing_where_its_program_is_killed(tmp_path: Path, tier: str) -> None:
    require_tier(tier)
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", KILLED_IN_A_TRIAL, tier]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280)
    assert ended.returncode == -9, ended.stderr
    wait_until(lambda: not list(tmp_path.iterdir()))


def test_a_path_with_a_line_break_is_refused_and_nothing_of_it_goes(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a\nb").mkdir()
    with pytest.raises(UserError, match=r"has a line break: .*: set TMPDIR to another"):
        remove_at_the_end(tmp_path / "a\nb")
    assert len(list(tmp_path.iterdir())) == 2


def test_a_program_whose_shell_was_killed_goes_on(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", SHELL_KILLED, tmp_path], check=True, timeout=280)
    assert tmp_path.is_dir()
